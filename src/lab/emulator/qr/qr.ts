import type { JsonObject } from "../../../core/json-object.ts";
import { type ServiceAnswer, zeroPadded } from "../answer.ts";
import type { LedgerEntry } from "../ledger.ts";
import { isApproved, OperationStore, operationEndOf, type SavedOperations, standOf } from "../operations.ts";
import { answerOrRefusal, type RefusalCodes, RequestReader } from "../request-reader.ts";
import type { EmulatedService, ServiceContext } from "../service-context.ts";
import { builtInWorld } from "../world.ts";
import { type PaymentSystem, paymentFailures, type QrPayment, type QrWorld, refundableAmount } from "./payment.ts";

/**
 * The emulated qr service: payments that are shown, paid by somebody in the meantime, asked about, and given back (qr contract). If the
 * contract leaves a choice open, it is made at the rule, and the comment there says so.
 *
 * How a customer pays is none of its business: the outcome that its context names when a payment is shown says what becomes of it.
 */

/** Errors: code is typically 1, and the contract has no other. */
const failed: RefusalCodes = { wrong: 1, missing: 1, amount: 1 };

const processingFailed = ["processing failed", "ask /check what became of the payment"] as const;

/** A till that doesn't know the trans can't ask /check, and is given it by the same request again. */
const showingFailed = ["processing failed", "send it again with the same pay_id, which shows the same payment"] as const;

export function emulatedQr(context: ServiceContext, world = builtInWorld.qr): EmulatedService {
  return new EmulatedQr(context, world);
}

/** A payment's name is its id alone: one payment is shown under a pay_id. */
const paymentName = (payId: string) => `pay_id ${payId}`;

class EmulatedQr implements EmulatedService<SavedOperations<QrPayment>> {
  readonly #context: ServiceContext;
  readonly #world: QrWorld;
  readonly #payments: OperationStore<QrPayment>;

  constructor(context: ServiceContext, world: QrWorld) {
    this.#context = context;
    this.#world = world;
    this.#payments = new OperationStore<QrPayment>(context, {
      namesOf: (payment) => [paymentName(payment.payId)],
      // A paid payment has no other effect than that /check says so
      ending: () => {},
    });
  }

  answer(route: string, body: JsonObject): ServiceAnswer {
    this.#payments.endDue();
    return answerOrRefusal(() => this.#answer(new RequestReader(route, body, failed)));
  }

  /** What was given back of a payment is one entry of its own, however often a part was. */
  ledger(): readonly LedgerEntry[] {
    this.#payments.endDue();
    return [...this.#payments.all()].flatMap((payment) => {
      const { number, payId: key, amount, givenBack, cancelled } = payment;
      const paid = { id: String(number), route: "/showqrcode", key, amount, end: standOf(payment) };
      if (givenBack === 0n) return [paid];
      return [
        paid,
        {
          id: `${number} back`,
          route: cancelled ? "/cancel" : "/refund",
          key,
          amount: givenBack,
          end: "approved",
          of: String(number),
        },
      ];
    });
  }

  saved(): SavedOperations<QrPayment> {
    return this.#payments.saved();
  }

  restore(saved: SavedOperations<QrPayment>): void {
    this.#payments.restore(saved);
  }

  reset(): void {
    this.#payments.reset();
    this.#context.changed();
  }

  #answer(request: RequestReader): ServiceAnswer {
    switch (request.route) {
      case "/check_connection":
        return {
          status: "success",
          data: { systems: this.#world.systems.map(({ name, operations }) => ({ name, operations })) },
        };
      case "/showqrcode":
        return this.#show(request);
      case "/check":
        return this.#check(request);
      case "/cancel":
      case "/refund":
        return this.#giveBack(request);
      case "/final_confirm":
        return this.#confirm(request);
      default:
        return request.refuse("there is no such route", "use one of the contract");
    }
  }

  /** Shows a payment. The same pay_id shows the same payment again, whatever has become of it. */
  #show(request: RequestReader): ServiceAnswer {
    const payId = request.id("pay_id");
    request.optionalId("rrn");
    const amount = request.amount("amount");
    const currency = request.id("currency");
    request.id("currency_name");
    const system = this.#systemOf(request);
    const existing = this.#payments.named(paymentName(payId));
    if (existing === undefined) return this.#showNew(request, { payId, amount, currency }, system);
    // The contract leaves this open: showing the other payment would have the customer pay what the till doesn't expect
    if (existing.amount !== amount || existing.currency !== currency || existing.system !== system.name) {
      return request.refuse("pay_id belongs to a payment with another amount, currency or pay_system", "send a new pay_id");
    }
    return showAnswer(existing, system);
  }

  #showNew(
    request: RequestReader,
    asked: Pick<QrPayment, "payId" | "amount" | "currency">,
    system: PaymentSystem,
  ): ServiceAnswer {
    const outcome = this.#payments.outcomeOf(request.route, asked.amount, `${request.route} ${asked.payId}`);
    if (outcome?.name === "internal-error") return request.refuse(...showingFailed);
    const payment = this.#payments.begin(outcome, (common) => {
      const rrn = zeroPadded(common.number, 12);
      return {
        ...common,
        ...asked,
        system: system.name,
        rrn,
        trans: system.makesTrans ? `EMU${rrn}` : undefined,
        givenBack: 0n,
        cancelled: false,
      };
    });
    return outcome?.name === "in-doubt" ? request.refuse(...showingFailed) : showAnswer(payment, system);
  }

  #check(request: RequestReader): ServiceAnswer {
    const payment = this.#paymentOf(request, request.id("pay_id"), request.id("trans"));
    this.#payments.check(payment);
    if (!payment.ended) return { status: "success" };
    if (payment.end !== "approved") return request.refuse(...paymentFailures[payment.end]);
    return { status: "success", data: { rrn: payment.rrn } };
  }

  /**
   * Gives back. A refund may be one of several, a cancel is the last: the contract tells them apart by nothing else than their names. The
   * very same request again gives back once more, if so much is left: that is why it mustn't be resent (flow rule 3).
   */
  #giveBack(request: RequestReader): ServiceAnswer {
    const { route } = request;
    const rrn = request.id("rrn");
    const amount = request.amount("amount");
    const currency = request.id("currency");
    const payment = this.#paymentOf(request, request.id("pay_id"), request.id("trans"));
    requirePaid(request, payment, rrn);
    if (payment.currency !== currency) return request.refuse("currency is not the payment's", "send the one of /showqrcode");
    if (amount > refundableAmount(payment)) return request.refuse(...paymentFailures.exhausted);
    const doubtful = this.#carryOut(request, amount, `${route} ${payment.payId} ${amount}`);
    payment.givenBack += amount;
    payment.cancelled = route === "/cancel";
    const own = zeroPadded(this.#payments.nextNumber(), 12);
    return doubtful ? request.refuse(...processingFailed) : { status: "success", data: { rrn: own } };
  }

  /** Fiscal data go to the payment system, which keeps them: no other answer depends on them. */
  #confirm(request: RequestReader): ServiceAnswer {
    const system = this.#systemOf(request);
    const payId = request.optionalId("pay_id");
    const trans = request.optionalId("trans");
    const rrn = request.optionalId("rrn");
    const fiscal = ["fiscal_id", "fiscal_num", "fiscal_url"].map((name) => request.optionalId(name) ?? "");
    const amount = request.optionalInteger("amount") ?? 0n;
    // Optional after payment (Endpoints, responses): before it there is nothing to confirm
    if (payId !== undefined) requirePaid(request, this.#paymentOf(request, payId, trans), rrn);
    const key = [request.route, system.name, payId, trans, rrn, amount, ...fiscal].join(" ");
    const doubtful = this.#carryOut(request, amount, key);
    return doubtful ? request.refuse(...processingFailed) : { status: "success" };
  }

  /** Carries out an operation that isn't polled: refuses it if it fails; true if its answer is to leave that in doubt. */
  #carryOut(request: RequestReader, amount: bigint, key: string): boolean {
    const outcome = this.#payments.outcomeOf(request.route, amount, key);
    if (outcome?.name === "internal-error") return request.refuse(...processingFailed);
    const end = operationEndOf(outcome);
    if (end !== "approved") return request.refuse(...paymentFailures[end]);
    return outcome?.name === "in-doubt";
  }

  /** The system that a request names, if it serves the route. */
  #systemOf(request: RequestReader): PaymentSystem {
    const name = request.id("pay_system");
    const system = this.#world.systems.find((each) => each.name === name);
    if (system === undefined) return request.refuse("there is no such pay_system", "choose one that /check_connection lists");
    if (system.operations.includes(request.route.slice(1))) return system;
    return request.refuse(`${name} does not serve this operation`, "choose one that /check_connection lists for it");
  }

  /** The payment of this pay_id, pay_system and trans: no request finds it unless all three are its own. */
  #paymentOf(request: RequestReader, payId: string, trans: string | undefined): QrPayment {
    const system = this.#systemOf(request);
    const payment = this.#payments.named(paymentName(payId));
    if (payment === undefined) return request.refuse("no payment has this pay_id", "send the one of /showqrcode");
    if (payment.system !== system.name) return request.refuse("pay_system is not the payment's", "send the one of /showqrcode");
    if (trans === undefined) return payment;
    if (payment.trans === undefined) {
      payment.trans = trans;
      this.#payments.changed(payment);
    }
    return payment.trans === trans
      ? payment
      : request.refuse("trans is not the payment's", "send the one that /showqrcode returned, or else the one you sent first");
  }
}

/** @param rrn The payment's, if the request has one. */
function requirePaid(request: RequestReader, payment: QrPayment, rrn: string | undefined): void {
  if (!payment.ended) request.refuse("the payment is in progress", "ask /check until it has ended");
  if (!isApproved(payment)) request.refuse("the payment was not paid", "there is nothing to do");
  if (rrn !== undefined && rrn !== payment.rrn) request.refuse("rrn is not the payment's", "send the one that /check returned");
}

function showAnswer(payment: QrPayment, system: PaymentSystem): ServiceAnswer {
  return system.makesTrans ? { status: "success", data: { trans: payment.trans } } : { status: "success" };
}
