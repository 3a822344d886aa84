/** The judge's rules, each removed in one place. */

export interface Mutation {
  /** What holds without it. */
  readonly rule: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  /** Why no law breaks without it, where none does. */
  readonly isUnseen?: string;
}

const judge = "src/settle/judge.ts";
const said = "src/settle/said.ts";
const proof = "src/settle/proof.ts";
const settling = "src/contract/settling.ts";

const mutation = (rule: string, file: string, from: string, to: string, isUnseen?: string): Mutation =>
  isUnseen === undefined ? { rule, file, from, to } : { rule, file, from, to, isUnseen };

export const mutations: readonly Mutation[] = [
  mutation("each end is the operation's own", judge, "if (before === undefined) return false;", "return true;"),
  mutation('"there is none" is said once', settling, "absentsMin: 3,", "absentsMin: 1,"),
  mutation("no half minute is waited for", settling, "const onItsWayMs = bankReplyTimeoutMs;", "const onItsWayMs = 0;"),
  mutation("each error is the terminal's own refusal", proof, "return code !== faultCodes.broken && ", "return true || "),
  mutation("a lost start leaves no doubt", judge, "doubt: true, refusal: undefined, next", "refusal: undefined, next"),
  mutation("a code 5 leaves no doubt", judge, "{ ...named, doubt: true, next", "{ ...named, next"),
  mutation("an open refusal takes doubt back", judge, "const inDoubt = doubt || (", "const inDoubt = doubt && ("),
  mutation("it may be sent again at any time", judge, "!isStopped && !isSentOnce && starts <= rules.resendsMax", "true"),
  mutation("it may be sent again however often", judge, " && starts <= rules.resendsMax", ""),
  mutation("what is stopped is sent again", judge, "!isStopped && !isSentOnce", "!isSentOnce"),
  mutation("what is sent once is sent again", judge, "!isStopped && !isSentOnce", "!isStopped"),
  mutation("each answer says something", proof, "return isGateways || namesOtherKey(operation, reply);", "return false;"),
  mutation("a gateway knows what it says", proof, "return isGateways || ", "return "),
  mutation(
    "an answer about another key counts",
    proof,
    "return isGateways || namesOtherKey(operation, reply);",
    "return isGateways;",
  ),
  mutation("the key's past isn't asked about", judge, 'next: asksFirst ? "ask" : "start"', 'next: "start"'),
  mutation("the key's past is denied once", judge, "return seen.nones < rules.absentsMin\n", "return seen.nones < 1\n"),
  mutation("an earlier start in doubt is forgotten", judge, "lastDoubt: known.doubt || known.isAccepted", "lastDoubt: false"),
  mutation("a listed refusal ends it in doubt as well", judge, "isRefused && !doubt && !named", "isRefused && !named"),
  mutation("each name is the proven one", judge, "name, isNameProven: isOnly,", "name, isNameProven: true,"),
  mutation("other names are forgotten", judge, "hasOtherNames: !isOnly", "hasOtherNames: false"),
  mutation(
    "what goes on has the proven name",
    judge,
    "...(!seen.hasOtherNames && { name, isNameProven: true })",
    "...{ name, isNameProven: true }",
  ),
  mutation(
    "a success without a name proves the till's own",
    judge,
    'return says === "going" && !known.doubt && known.refusals === 0 && !known.isAccepted',
    'return says === "going"',
  ),
  mutation("another payment's name is heard", said, " || (name !== undefined && name !== asked)", ""),
  mutation("an error ends what has no proven name", judge, "if (isProven) return", "if (known.name) return"),
  mutation("one refusal is enough of qr", judge, "known.refusals > 1 && !known.doubt", "!known.doubt"),
  mutation("two refusals are enough in doubt", judge, "known.refusals > 1 && !known.doubt", "known.refusals > 1"),
  mutation("a copy is asked for again", judge, 'why: undefined, next: "none" };', 'why: undefined, next: "print" };'),
  mutation("a missing print isn't heard", proof, "return rules.print !== undefined && (summary", "return false && (summary"),
  mutation("a missing print is forgotten", judge, "known.isUnprinted || unprinted", "known.isUnprinted"),
  mutation("an end is taken back", judge, 'fact.is === "told" && known.end === "failed"', 'fact.is === "told"'),
  mutation(
    "a failure is never taken back",
    judge,
    ' && !(fact.is === "told" && known.end === "failed")',
    "",
    "a failure that is proven happened in each history",
  ),
  mutation(
    "what was there before is denied",
    judge,
    "if (!isNothing(known.before)) return ask",
    "if (known.before === undefined) return ask",
  ),
  mutation(
    "a start that may have left has not",
    judge,
    "isOut: false, doubt: true, starts: Math",
    "isOut: false, starts: Math",
  ),
  mutation("denials outlive a crash", judge, "const anew = { nones: 0, noneMs: undefined, startMs", "const anew = { startMs"),
  mutation("denials need not be in a row", judge, "{ ...known, nones: 0, noneMs: undefined };\n  switch", "known;\n  switch"),
  mutation("what was accepted is denied", settling, 'absentWhenAccepted: "ask",', 'absentWhenAccepted: "refused",'),
  mutation(
    "each abort took it away",
    judge,
    'isAborted && rules.absentWhenAborted === "refused"',
    'rules.absentWhenAborted === "refused"',
  ),
  mutation(
    "a refund is taken for the sale's document",
    judge,
    "said.ids !== undefined && !isOwn(operation, named, said.ids)",
    "false",
  ),
  mutation("what is in doubt has not begun", judge, "!doubt && refusals === 0 && !isAccepted", "refusals === 0 && !isAccepted"),
  mutation("what was refused has not begun", judge, "!doubt && refusals === 0 && !isAccepted", "!doubt && !isAccepted"),
  mutation(
    "what is stopped goes on to be sent",
    judge,
    "return ask(operation, { ...known, isStopped: true });",
    "return { ...known, isStopped: true };",
  ),
  mutation(
    "each sign is built anew",
    judge,
    "!isSignedAgain && mayResend(operation, named)",
    "mayResend(operation, named)",
    "a wrong sign uses up all that may go wrong in a history",
  ),
  mutation("of what runs an end is awaited in vain", said, "hasCode(pendingCodes, code) || (code", "(code"),
  mutation(
    "code 5 waits for half a minute",
    judge,
    ' && !(isDenied && refusal.says === "resend")',
    "",
    "the word comes later, and is the same",
  ),
  mutation("each open refusal is denied at once", judge, '!(isDenied && refusal.says === "resend")', "!isDenied"),
  mutation(
    "a failure with a success is an end",
    proof,
    "if (success) return good ? end : undefined;",
    "if (success) return end;",
    "no contract has such an answer",
  ),
  mutation(
    "what was asked before its own answer counts",
    judge,
    "if (known.isOut || fact.atMs < known.startMs) return known;",
    "",
    "one thing at a time is done in a history",
  ),
];
