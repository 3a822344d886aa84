// A sale by card, then its fiscal receipt: receipt.exe KEY AMOUNT MERCHANT_ID [BANK] [FISCAL]. .NET, .NET Framework or Mono.
// After a crash, run it again with the same arguments: nothing is charged, or printed as a sale, a second time.
// Exit code 4: the card is charged, and there is no receipt yet.
using System;
using System.IO;
using System.Linq;
using System.Net.Http;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading.Tasks;

static class Receipt
{
    const string formType = "application/x-www-form-urlencoded";
    static bool isCharged;
    static readonly HttpClient client = new HttpClient { Timeout = TimeSpan.FromSeconds(240) };

    // Not by returning: a Mono that has used an HttpClient hangs now and then at its end.
    static void Main(string[] args) { Environment.Exit(Run(args)); }

    static int Run(string[] args)
    {
        client.DefaultRequestHeaders.ExpectContinue = false;
        if (args.Length < 3 || args[1] == "" || !args[1].All(char.IsDigit))
            return Say(64, "Usage: receipt.exe KEY AMOUNT MERCHANT_ID [BANK] [FISCAL], such as A-1 1500 MERCHANT-1");
        var bank = args.Length > 3 ? args[3] : "http://localhost:8888";
        var fiscal = args.Length > 4 ? args[4] : "http://localhost:8008";
        try { return Sell(args[0], args[1], args[2], bank, fiscal).GetAwaiter().GetResult(); }
        catch (Stopped e) { return Say(isCharged ? 4 : e.Code, e.Message); }
    }

    static async Task<int> Sell(string key, string amount, string merchant, string bank, string fiscal)
    {
        var sale = "{\"pay_id\":\"" + key + "\",\"amount\":" + amount + ",\"currency_name\":\"EUR\"}";
        var paid = await Settled(bank + "/sale", sale, "application/json");
        Console.WriteLine(paid.Item1);
        if (paid.Item1 != "approved") return 1;
        isCharged = true;
        var rrn = Regex.Match(paid.Item2, "\"rrn\"\\s*:\\s*\"([^\"]+)\"").Groups[1].Value;
        if (rrn == "") return Say(4, "The answer has no rrn for the receipt: run it again");
        // A key of its own: a document under the sale's would be refused on the same terminal.
        var receipt = "{\"documentExtID\":\"" + key + "-R\"," +
            "\"items\":[{\"itemName\":\"Coffee\",\"itemQty\":1000,\"itemAmount\":" + amount + "," +
            "\"itemTaxes\":[{\"taxPrc\":1800}]}]," +
            "\"extraPayments\":[{\"amount\":" + amount + ",\"trxParams\":{\"rrn\":\"" + rrn + "\"}}]}";
        var issued = await Settled(fiscal + "/sale", Form(receipt, merchant), formType);
        Console.WriteLine(issued.Item1);
        if (issued.Item1 == "unprinted")
        {
            // The document is closed, only the paper is missing. A run asks for a copy once: a lost answer may have printed it.
            var id = Regex.Match(issued.Item2, "\"documentID\"\\s*:\\s*\"?(\\d+)").Groups[1].Value;
            var copy = await Post(fiscal + "/check_copy", Form("{\"documentID\":" + id + "}", merchant), formType, "");
            var text = await TextOf(copy);
            Console.WriteLine(Regex.IsMatch(text, "\"status\"\\s*:\\s*\"success\"") ? "copied" : "no copy: " + text);
        }
        return issued.Item1 == "closed" || issued.Item1 == "unprinted" ? 0 : 4;
    }

    /// <summary>How a call ends, and the answer that shows it: the same call is sent until that is known.</summary>
    static async Task<Tuple<string, string>> Settled(string address, string body, string type)
    {
        for (var pause = TimeSpan.FromSeconds(2); ; await Task.Delay(pause))
            try
            {
                var answer = await Post(address, body, type, "wait=60");
                var text = await TextOf(answer);
                var status = (int)answer.StatusCode;
                var word = Header(answer, "X-Posline-Result");
                var isOpen = word == "pending" || word == "unknown";
                if (word != "" && !isOpen && !(word == "failed" && status == 503))
                {
                    Say(0, text);
                    return Tuple.Create(word, text);
                }
                if (isOpen && Header(answer, "X-Posline-Repeat-Guard") == "off")
                    throw new Stopped(3, address + " is " + word +
                        ", and no journal: look at the terminal, and do not send it again before");
                if (word == "" && status < 500 && status != 408) throw new Stopped(2, status + " " + text);
                pause = answer.Headers.RetryAfter?.Delta ?? TimeSpan.FromSeconds(2);
            }
            // Not there, or cut: the same call again.
            catch (Exception e) when (e is HttpRequestException || e is OperationCanceledException || e is IOException)
            {
                pause = TimeSpan.FromSeconds(2);
            }
    }

    static Task<HttpResponseMessage> Post(string address, string body, string type, string prefer)
    {
        var content = new StringContent(body, Encoding.UTF8, type);
        var request = new HttpRequestMessage(HttpMethod.Post, address) { Content = content };
        if (prefer != "") request.Headers.Add("Prefer", prefer);
        return client.SendAsync(request);
    }

    /// <summary>The fiscal form: the sign is Base64 of the hexadecimal SHA-1 of data and the merchant's id.</summary>
    static string Form(string document, string merchant)
    {
        var data = Convert.ToBase64String(Encoding.UTF8.GetBytes(document));
        using (var sha1 = SHA1.Create())
        {
            var hash = sha1.ComputeHash(Encoding.UTF8.GetBytes(data + merchant));
            var digest = string.Concat(hash.Select(each => each.ToString("x2")));
            var sign = Convert.ToBase64String(Encoding.UTF8.GetBytes(digest));
            return "data=" + Uri.EscapeDataString(data) + "&sign=" + Uri.EscapeDataString(sign);
        }
    }

    static async Task<string> TextOf(HttpResponseMessage answer)
    {
        return Encoding.UTF8.GetString(await answer.Content.ReadAsByteArrayAsync());
    }

    static string Header(HttpResponseMessage answer, string name)
    {
        return answer.Headers.Contains(name) ? answer.Headers.GetValues(name).First() : "";
    }

    static int Say(int code, string text) { Console.Error.WriteLine(text); return code; }

    class Stopped : Exception
    {
        public readonly int Code;
        public Stopped(int code, string text) : base(text) { Code = code; }
    }
}
