import type { RehearsalPort } from "./port.ts";
import { type Deed, deeds } from "./scenario.ts";
import type { Till } from "./stand.ts";
import { unsupported } from "./till.ts";
import { amountText } from "./verdict.ts";

/** A till with a screen: a person does what the rehearsal's page says, and tells what the screen shows. */
export function screenTill(port: RehearsalPort): Till {
  /** The deed during which the till was switched off, which is to be done again. */
  let isAgain = false;
  let isAsked = false;
  return (order, env) => {
    if (isAsked) return unsupported("a person has one screen");
    isAsked = true;
    const { do: deed, amount, key, of } = order;
    port.show({
      addresses: {
        "bank is at": env["POSLINE_BANK_URL"] ?? "",
        "fiscal at": env["POSLINE_FISCAL_URL"] ?? "",
        "qr at": env["POSLINE_QR_URL"] ?? "",
      },
    });
    const note = isAgain
      ? "Switch the till off at once, and on again. Then do what your cashier would do."
      : noteOf(deed, key, of);
    isAgain = false;
    const said = port.ask(deeds[deed].asks.replace("{amount}", amountText(BigInt(amount))), note);
    return {
      ended: said.then((word) => {
        isAsked = false;
        port.show({ task: "", note: "Noted" });
        return { word, text: word, how: "ended" };
      }),
      kill: () => {
        isAsked = false;
        isAgain = true;
      },
    };
  };
}

function noteOf(deed: Deed, key: string, of: string): string {
  const name = `If your till lets you name it, name it ${key}.`;
  if (of !== "") return `It belongs to what you did right before. ${name}`;
  return deed === "receipt" ? `Without a card payment by this till. ${name}` : name;
}
