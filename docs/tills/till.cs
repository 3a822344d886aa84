// A sale, sent again until its end is known: dotnet run -- KEY AMOUNT, the amount in minor units. Not run by posline's tests.
using System.Text;
using System.Text.Json;

if (args.Length != 2 || !long.TryParse(args[1], out var amount) || amount < 0)
{
    Console.Error.WriteLine("Usage: dotnet run -- KEY AMOUNT, such as A-1 1500");
    return 64;
}
var exits = new Dictionary<string, int> { ["approved"] = 0, ["declined"] = 1, ["failed"] = 1, ["reversed"] = 1 };
var sale = JsonSerializer.Serialize(new { pay_id = args[0], amount, currency_name = "EUR" });
using var client = new HttpClient { Timeout = TimeSpan.FromSeconds(90) };
client.DefaultRequestHeaders.Add("Prefer", "wait=60");
while (true)
{
    var pause = TimeSpan.FromSeconds(2);
    try
    {
        using var content = new StringContent(sale, Encoding.UTF8, "application/json");
        using var answer = await client.PostAsync("http://localhost:8888/sale", content);
        var word = answer.Headers.TryGetValues("X-Posline-Result", out var words) ? words.First() : "";
        var text = await answer.Content.ReadAsStringAsync();
        if (exits.TryGetValue(word, out var code)) { Console.WriteLine(word); Console.Error.WriteLine(text); return code; }
        var isRefused = word == "" && (int)answer.StatusCode is < 500 and not 408;
        if (isRefused) { Console.Error.WriteLine($"{(int)answer.StatusCode} {text}"); return 2; }
        pause = answer.Headers.RetryAfter?.Delta ?? pause;
    }
    catch (Exception e) when (e is HttpRequestException or TaskCanceledException) { } // Not there, or cut: the same call again.
    await Task.Delay(pause);
}
