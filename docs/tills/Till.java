import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Map;

/** A sale, sent again until its end is known: java Till.java KEY AMOUNT [ADDRESS], the amount in minor units. */
class Till {
    public static void main(String[] args) throws InterruptedException {
        if (args.length < 2 || !args[1].matches("\\d+")) {
            System.err.println("Usage: java Till.java KEY AMOUNT [ADDRESS], such as A-1 1500");
            System.exit(64);
        }
        var exits = Map.of("approved", 0, "declined", 1, "failed", 1, "reversed", 1);
        var sale = String.format("{\"pay_id\":\"%s\",\"amount\":%s,\"currency_name\":\"EUR\"}", args[0], args[1]);
        var address = URI.create((args.length > 2 ? args[2] : "http://localhost:8888") + "/sale");
        var request = HttpRequest.newBuilder(address).timeout(Duration.ofSeconds(90))
                .headers("Content-Type", "application/json", "Prefer", "wait=60").POST(BodyPublishers.ofString(sale)).build();
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
        for (var pause = "2";; Thread.sleep(Long.parseLong(pause) * 1_000)) {
            try {
                var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
                var word = answer.headers().firstValue("X-Posline-Result").orElse("");
                var isUnsent = word.equals("failed") && answer.statusCode() == 503; // So the same call again.
                if (exits.containsKey(word) && !isUnsent) {
                    System.out.println(word);
                    System.err.println(answer.body());
                    System.exit(exits.get(word));
                } else if (word.matches("pending|unknown") && answer.headers().firstValue("X-Posline-Repeat-Guard").isPresent()) {
                    System.err.println(word + ", and no journal: look at the terminal, and do not sell again before");
                    System.exit(3);
                } else if (word.isEmpty() && answer.statusCode() < 500 && answer.statusCode() != 408) {
                    System.err.println(answer.statusCode() + " " + answer.body());
                    System.exit(2);
                }
                pause = answer.headers().firstValue("Retry-After").filter(s -> s.matches("\\d{1,5}")).orElse("2");
            } catch (IOException e) { pause = "2"; } // Not there, or cut: the same call again.
        }
    }
}
