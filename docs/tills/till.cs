// A sale, sent again until its end is known: till.exe KEY AMOUNT [ADDRESS], the amount in minor units.
// For .NET, .NET Framework and Mono; the tests run it on Mono.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Text;
using System.Threading.Tasks;

static class Till
{
    // Not by returning: a Mono that has used an HttpClient hangs now and then at its end.
    static void Main(string[] args) { Environment.Exit(Sell(args).GetAwaiter().GetResult()); }
    static int Say(int code, string text) { Console.Error.WriteLine(text); return code; }

    static async Task<int> Sell(string[] args)
    {
        if (args.Length < 2 || args[1] == "" || !args[1].All(char.IsDigit))
            return Say(64, "Usage: till.exe KEY AMOUNT [ADDRESS], such as A-1 1500");
        var address = (args.Length > 2 ? args[2] : "http://localhost:8888") + "/sale";
        var exits = new Dictionary<string, int> { { "approved", 0 }, { "declined", 1 }, { "failed", 1 }, { "reversed", 1 } };
        var sale = "{\"pay_id\":\"" + args[0] + "\",\"amount\":" + args[1] + ",\"currency_name\":\"EUR\"}";
        var client = new HttpClient { Timeout = TimeSpan.FromSeconds(90) };
        client.DefaultRequestHeaders.Add("Prefer", "wait=60");
        client.DefaultRequestHeaders.ExpectContinue = false;
        for (var pause = 2.0; ; await Task.Delay(TimeSpan.FromSeconds(pause)))
            try
            {
                var answer = await client.PostAsync(address, new StringContent(sale, Encoding.UTF8, "application/json"));
                var text = Encoding.UTF8.GetString(await answer.Content.ReadAsByteArrayAsync());
                var status = (int)answer.StatusCode;
                var headers = answer.Headers.ToDictionary(each => each.Key.ToLower(), each => each.Value.First());
                var word = headers.ContainsKey("x-posline-result") ? headers["x-posline-result"] : "";
                var isUnsent = word == "failed" && status == 503; // So the same call again.
                if (exits.ContainsKey(word) && !isUnsent) { Console.WriteLine(word); return Say(exits[word], text); }
                if ((word == "pending" || word == "unknown") && headers.ContainsKey("x-posline-repeat-guard"))
                    return Say(3, word + ", and no journal: look at the terminal, and do not sell again before");
                if (word == "" && status < 500 && status != 408) return Say(2, status + " " + text);
                pause = answer.Headers.RetryAfter?.Delta?.TotalSeconds ?? 2;
            }
            catch (Exception e) when (e is HttpRequestException || e is OperationCanceledException || e is IOException)
            {
                pause = 2; // Not there, or cut: the same call again.
            }
    }
}
