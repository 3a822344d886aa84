import assert from "node:assert/strict";
import { test } from "node:test";
import { copyMs, openMax, passedOverMax, rowAnswerMs, rowMin } from "../../src/recovery/limits.ts";
import { type Question, Questions } from "../../src/recovery/questions.ts";

/** One that lists the second question. */
function asking(): Questions {
  const questions = new Questions();
  questions.offersSecond = true;
  return questions;
}

const other = (question: Question): Question => (question === "probe" ? "second" : "probe");

test("Questions takes a row of right answers to questions that were drawn for proof, and none to others", () => {
  const questions = asking();
  for (let n = 0; n < rowMin; n++) {
    assert.equal(questions.isProof, false);
    const question = n % 3 === 0 ? "second" : "probe";
    questions.asked(question, true);
    assert.equal(questions.answered(question, true), true);
  }
  assert.equal(questions.isProof, true);
  const known = asking();
  for (let n = 0; n < 2 * rowMin; n++) known.asked("probe", false);
  for (let n = 0; n < 2 * rowMin; n++) assert.equal(known.answered("probe", false), true);
  assert.equal(known.isProof, false, "anybody could have known these");
});

test("Questions takes the second one for left out only where something behind it was answered", () => {
  const questions = asking();
  questions.asked("probe", true);
  questions.asked("second", true);
  assert.equal(questions.answered("probe", false), true);
  assert.deepEqual([questions.passedOver, questions.row], [0, 1]);
  questions.asked("probe", true);
  assert.equal(questions.answered("probe", true), false, "the second one is lost, or this is an older one");
  assert.deepEqual([questions.passedOver, questions.row], [1, 2]);
});

test("Questions begins a row anew after a wrong answer, and waits longer for what is out after each", () => {
  const questions = asking();
  questions.answersSecond = true;
  const mostMs = 30_000;
  for (const answerMs of [rowAnswerMs, 2 * rowAnswerMs, 4 * rowAnswerMs, mostMs, mostMs]) {
    questions.asked("probe", true);
    assert.equal(questions.answered("probe", true), true);
    assert.equal(questions.row, 1);
    questions.asked("probe", true);
    assert.equal(questions.answered("second", true), false);
    assert.deepEqual([questions.row, questions.open, questions.answerMs(mostMs)], [0, [], answerMs]);
  }
  questions.renew();
  questions.asked("second", true);
  questions.answered("probe", true);
  assert.equal(questions.answerMs(mostMs), rowAnswerMs);
});

test("Questions leaves a moment for a copy before the next question of a row, once an answer was wrong, and longer after each", () => {
  const questions = asking();
  const mostMs = 30_000;
  questions.asked("probe", true);
  questions.answered("probe", true);
  assert.equal(questions.pauseMs(mostMs), 0);
  for (const gapMs of [1, 2, 4, 8, 16, 32].map((times) => times * copyMs).concat(rowAnswerMs)) {
    questions.asked("probe", true);
    questions.answered("second", true);
    assert.equal(questions.pauseMs(mostMs), questions.answerMs(mostMs));
    questions.asked("probe", true);
    questions.answered("probe", true);
    assert.equal(questions.pauseMs(mostMs), gapMs);
  }
});

test("Questions needs a row after an answer to another question than the oldest one, and after a silence, where it can be had", () => {
  const questions = asking();
  questions.answersSecond = true;
  questions.asked("second", false);
  questions.answered("probe", true);
  assert.deepEqual([questions.isBehind, questions.needsRow], [true, true]);
  questions.proved();
  assert.equal(questions.needsRow, false);
  questions.isUnsure = true;
  assert.equal(questions.needsRow, true);
  questions.offersSecond = false;
  assert.equal(questions.needsRow, false);
  questions.proved();
  assert.equal(questions.isUnsure, false);
});

test("Questions compares an answer with the oldest question that is out, or one that came promptly with the last one", () => {
  for (const [question, isPrompt, row] of [
    ["probe", false, 1],
    ["second", false, 0],
    ["probe", true, 0],
    ["second", true, 1],
  ] as const) {
    const questions = asking();
    questions.asked("probe", true);
    questions.asked("second", true);
    questions.answered(question, isPrompt);
    assert.equal(questions.row, row, `${question} ${isPrompt}`);
  }
});

test("Questions makes nothing of an answer while nothing is out", () => {
  const questions = asking();
  questions.asked("probe", true);
  questions.answered("probe", true);
  assert.equal(questions.answered("probe", false), false, "it may be a copy");
  assert.deepEqual([questions.row, questions.misfits, questions.canTell], [1, 0, true]);
});

test("Questions of a service that leaves out the second one, or refuses it: it can't be told so by and by", () => {
  for (const leavesOut of [
    (questions: Questions) => {
      questions.asked("probe", false);
      assert.equal(questions.answered("probe", true), false, "it may be an older one");
    },
    (questions: Questions) => questions.refused(),
  ]) {
    const questions = asking();
    for (let time = 1; time <= passedOverMax.ofUnknown; time++) {
      questions.asked("second", true);
      leavesOut(questions);
      assert.equal(questions.canTell, time < passedOverMax.ofUnknown);
      assert.deepEqual(questions.open, []);
    }
  }
  const answers = asking();
  for (let time = 0; time < 2 * passedOverMax.ofKnown; time++) {
    answers.asked("second", true);
    assert.equal(answers.answered("second", true), true);
    answers.asked("second", true);
    answers.asked("probe", true);
    assert.equal(answers.answered("probe", false), false, "it answers it, so this is an older answer, or that one is lost");
  }
  assert.ok(answers.canTell, "one now and then may be lost");
  for (let time = 1; time < passedOverMax.ofKnown; time++) {
    answers.asked("second", true);
    assert.equal(answers.answered("probe", true), false);
    assert.equal(answers.canTell, time + 1 < passedOverMax.ofKnown, "older answers look like that, but not for ever");
  }
});

test("Questions that older answers contradict need a row, of a service that can be asked both", () => {
  const questions = asking();
  questions.contradicted();
  assert.equal(questions.isBehind, true);
  questions.proved();
  assert.equal(questions.isBehind, false);
  const one = new Questions();
  one.contradicted();
  assert.equal(one.isBehind, false);
});

test("Questions keeps no more than openMax of what is out", () => {
  const questions = asking();
  for (let n = 0; n < 2 * openMax; n++) questions.asked(n % 2 === 0 ? "probe" : "second", true);
  assert.equal(questions.open.length, openMax);
  assert.equal(questions.open[0]?.question, other(questions.open[1]?.question ?? "probe"));
});

test("Questions begins a row anew with each recovery, and once nothing older is left", () => {
  for (const ends of ["renew", "proved"] as const) {
    const questions = asking();
    questions.asked("probe", true);
    questions.answered("probe", true);
    assert.equal(questions.row, 1);
    questions[ends]();
    assert.equal(questions.row, 0, ends);
  }
});

test("Questions goes on with a row behind a refusal, which takes the oldest question away", () => {
  const questions = asking();
  questions.asked("probe", true);
  questions.answered("probe", true);
  questions.asked("probe", true);
  questions.asked("second", true);
  questions.refused();
  assert.deepEqual([questions.row, questions.open], [1, [{ question: "second", isDrawn: true }]]);
  questions.answered("second", false);
  assert.deepEqual([questions.row, questions.misfits], [2, 0]);
});

test("Questions is slow once an answer was wrong, for as long as a row can be had", () => {
  const questions = asking();
  assert.equal(questions.isSlow, false);
  questions.asked("second", true);
  questions.answered("probe", true);
  assert.equal(questions.isSlow, true);
  questions.offersSecond = false;
  assert.equal(questions.isSlow, false);
});
