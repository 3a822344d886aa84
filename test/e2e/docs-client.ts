import { createClient, type Token } from "posline";

declare function store(token: Token): void;

const client = createClient({ fiscal: { merchantId: "MERCHANT-1" } });

const { result, data, message } = await client.bank.settle(
  "sale",
  { amount: 1500, currency_name: "EUR" },
  { onProgress: ({ token }) => store(token) },
);
if (result === "approved") console.log(`paid, rrn ${data?.rrn}`);
else if (result === "unknown") console.log("not known yet: client.resume(token) goes on");
else console.log(`${result}: ${message}`);
