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

const machine = "src/settle/machine.ts";
const proof = "src/settle/proof.ts";
const state = "src/settle/state.ts";
const settling = "src/contract/settling.ts";

const mutation = (rule: string, file: string, from: string, to: string, isUnseen?: string): Mutation =>
  isUnseen === undefined ? { rule, file, from, to } : { rule, file, from, to, isUnseen };

export const mutations: readonly Mutation[] = [
  mutation("each end is the operation's own", proof, "if (baseline === undefined) return false;", "return true;"),
  mutation('"there is none" is said once', settling, "absentsMin: 3,", "absentsMin: 1,"),
  mutation("no half minute is waited for", settling, "const onItsWayMs = bankReplyTimeoutMs;", "const onItsWayMs = 0;"),
  mutation("each error is the terminal's own refusal", proof, "return code !== faultCodes.broken && ", "return true || "),
  mutation("a lost start leaves no doubt", machine, 'phase: "lost", doubt: true, absents: 0', 'phase: "lost", absents: 0'),
  mutation("a code 5 leaves no doubt", machine, "{ ...state, doubt: true, resends", "{ ...state, resends"),
  mutation("an open refusal takes doubt back", machine, "const doubt = state.doubt || (", "const doubt = state.doubt && ("),
  mutation("it may be sent again at any time", machine, "mayResend(state) && state.resends < resendsMax;", "true;"),
  mutation(
    "it may be sent again however often",
    machine,
    "mayResend(state) && state.resends < resendsMax;",
    "mayResend(state);",
  ),
  mutation(
    "what is sent once, stopped or old is sent again",
    state,
    "return !askOnly && !isSentOnce && !isOld;",
    "return true;",
  ),
  mutation("what is stopped is sent again", state, "return !askOnly && ", "return "),
  mutation("what is sent once is sent again", state, " && !isSentOnce && ", " && "),
  mutation(
    "what is old is sent again",
    state,
    " && !isSentOnce && !isOld;",
    " && !isSentOnce;",
    "what is old is told apart before it would be sent again (afterAbsent, afterFinalError)",
  ),
  mutation("each answer says something", proof, "return isGateways || namesOtherKey(operation, reply);", "return false;"),
  mutation("a gateway knows what it says", proof, "return isGateways || ", "return "),
  mutation(
    "an answer about another key counts",
    proof,
    "return isGateways || namesOtherKey(operation, reply);",
    "return isGateways;",
  ),
  mutation(
    "the key's past isn't asked about",
    "src/settle/token.ts",
    "const ask = rules.baseline !== undefined && named;",
    "const ask = false;",
  ),
  mutation("the key's past is denied once", machine, "if (absents < rules.absentsMin) return", "if (absents < 1) return"),
  mutation("an earlier start in doubt is forgotten", machine, "earlierInDoubt: state.doubt }", "earlierInDoubt: false }"),
  mutation(
    "a listed refusal ends it in doubt as well",
    machine,
    "if (provesNothingBegun && !state.doubt)",
    "if (provesNothingBegun)",
  ),
  mutation(
    "each name is the proven one",
    machine,
    "learned: name, learnedProven: isOnly",
    "learned: name, learnedProven: true",
  ),
  mutation("other names are forgotten", machine, "hasOtherNames: !isOnly", "hasOtherNames: false"),
  mutation("what goes on has the proven name", machine, "state.learnedProven || !state.hasOtherNames", "true"),
  mutation(
    "a success without a name proves the till's own",
    machine,
    "return success && nothingBegun(state) ?",
    "return success ?",
  ),
  mutation(
    "another payment's name is heard",
    machine,
    "return named !== undefined && named !== state.learned;",
    "return false;",
  ),
  mutation(
    "an error ends what has no proven name",
    machine,
    "if (state.learnedProven) return {",
    "if (state.learned) return {",
  ),
  mutation("one refusal is enough of qr", machine, "state.refusals > 1 && !state.doubt", "!state.doubt"),
  mutation("two refusals are enough in doubt", machine, "state.refusals > 1 && !state.doubt", "state.refusals > 1"),
  mutation("a copy is asked for again", machine, "if (state.copied || !nameable)", "if (!nameable)"),
  mutation(
    "a copy that was asked for is forgotten in a crash",
    state,
    'return { ...state, phase: "accepted", copied: true };',
    'return { ...state, phase: "accepted" };',
  ),
  mutation("a missing print isn't heard", proof, "return rules.print !== undefined && (summary", "return false && (summary"),
  mutation(
    "a missing print is forgotten",
    machine,
    'code === rules.print?.code) return askAgain({ ...state, phase: "accepted", unprinted: true });',
    'code === rules.print?.code) return askAgain({ ...state, phase: "accepted" });',
  ),
  mutation("what is said of another is taken for its own", proof, "if (!hasEnded) return false;", "return false;"),
  mutation("what has ended is denied", machine, "state.hasEnded || state.isOld || ", "state.isOld || "),
  mutation("what is old is denied", machine, "state.hasEnded || state.isOld || ", "state.hasEnded || "),
  mutation("an error ends what is old", machine, "if (state.isOld) return askAgain(state);", ""),
  mutation("what was there before is denied", machine, 'state.isOld || state.baseline !== ""', "state.isOld"),
  mutation("a start that may have left has not", state, 'return { ...state, phase: "lost", doubt: true };', "return state;"),
  mutation("denials outlive a crash", state, "const state = { ...stored, absents: 0 };", "const state = stored;"),
  mutation("denials outlive a start", machine, "resends: state.resends + 1, absents: 0 }", "resends: state.resends + 1 }"),
  mutation(
    "denials need not be in a row",
    machine,
    "const seen = { ...state, absents: 0 };\n  const end",
    "const seen = state;\n  const end",
  ),
  mutation("what was accepted is denied", settling, 'absentWhenAccepted: "ask",', 'absentWhenAccepted: "refused",'),
  mutation(
    "each abort took it away",
    machine,
    'state.isAborted && rules.absentWhenAborted === "refused"',
    'rules.absentWhenAborted === "refused"',
  ),
  mutation(
    "a refused start counts as begun by an earlier document",
    machine,
    "if (end !== undefined && !provesOwnEnd(operation, state.baseline, reply))",
    "if (false)",
  ),
  mutation(
    "what is in doubt has not begun",
    state,
    "return !state.doubt && state.refusals === 0",
    "return state.refusals === 0",
  ),
  mutation("what was refused has not begun", state, "return !state.doubt && state.refusals === 0", "return !state.doubt"),
  mutation(
    "what is stopped goes on to be sent",
    state,
    'return state.phase === "ready" && !nothingBegun(state) ? stateToAskAbout(stop) : stop;',
    "return stop;",
  ),
  mutation(
    "each sign is built anew",
    machine,
    "!state.signedAgain && mayResend(state);",
    "mayResend(state);",
    "a wrong sign uses up all that may go wrong in a history",
  ),
  mutation(
    "no sign is built anew",
    machine,
    "if (signsAgain) return",
    "if (false) return",
    "it ends as refused, which is true",
  ),
  mutation(
    "of what runs an end is awaited in vain",
    machine,
    "if (hasCode(contract.finals.pendingCodes, code)) return askAgain",
    "if (false) return askAgain",
  ),
  mutation(
    "code 5 waits for half a minute",
    machine,
    "return hasCode(rules.resendCodes, state.refusal?.code) ? counted : endLater;",
    "return endLater;",
    "the word comes later, and is the same",
  ),
  mutation(
    "each open refusal is denied at once",
    machine,
    "return hasCode(rules.resendCodes, state.refusal?.code) ? counted : endLater;",
    "return counted;",
  ),
  mutation(
    "a failure with a success is an end",
    proof,
    "if (success) return good ? end : undefined;",
    "if (success) return end;",
    "no contract has such an answer",
  ),
  mutation(
    "the bridge forgets what was there before, and believes all",
    "src/operations/whose.ts",
    "if (before === undefined)",
    "if (false)",
    "the machine proves nothing without a baseline either (provesOwnEnd, afterAbsent)",
  ),
  mutation(
    "the bridge takes back a failure for an answer that says nothing",
    "src/operations/known.ts",
    'phase === "accepted" && endOfOne(sending) === "failed" ? "lost" : phase',
    "phase",
  ),
];
