import type { AdminPort } from "./admin-port.ts";
import type { ExplainedKey, Explanation } from "./answers.ts";
import { make, makeEnglish } from "./dom.ts";
import { dayAndTime, moneyOf, optionalText, text } from "./texts.ts";

/** What happened under a key, as `posline explain` says it: asked for each time that somebody opens it. */
export function storyOf(port: AdminPort, key: string): HTMLElement {
  const told = make("div");
  told.ariaLive = "polite";
  const story = make("details", "story", make("summary", "", text("story")), told);
  story.addEventListener("toggle", async () => {
    if (!story.open) return;
    try {
      const { operations, notes } = await port.json<ExplainedKey>(`explain?key=${encodeURIComponent(key)}`);
      told.replaceChildren(...operations.flatMap(wordsOf), ...notes.map((note) => makeEnglish("p", "quiet", note)));
    } catch (error) {
      told.replaceChildren(makeEnglish("p", "", String(error)));
    }
  });
  return story;
}

function wordsOf({ service, route, amount, currency, moments, result, proof, todo }: Explanation): readonly HTMLElement[] {
  const money = amount === undefined ? "" : `, ${moneyOf(amount, currency)}`;
  const end = make("strong", "", optionalText(`result.${result}`) ?? result);
  const rows = moments.map((each) =>
    make("li", "", make("time", "", dayAndTime(new Date(each.timeMs))), makeEnglish("span", "", each.text)),
  );
  return [
    make("p", "", make("strong", "", `${service} ${route}${money}`)),
    make("ol", "moments", ...rows),
    make("p", "", end, ": ", makeEnglish("span", "", proof)),
    makeEnglish("p", "", todo),
  ];
}
