import type { EmulatedEnd, EmulatedOperation } from "../operations.ts";
import type { WorldSettings } from "../world-schema.ts";

/** The payment systems of the emulated qr service, and its memory of a payment. */

export type QrWorld = WorldSettings["qr"];

export type PaymentSystem = QrWorld["systems"][number];

export interface QrPayment extends EmulatedOperation {
  readonly payId: string;
  readonly system: string;
  /** Minor units. */
  readonly amount: bigint;
  readonly currency: string;
  readonly rrn: string;
  /** If the system makes no trans, the first that the till names: /check asks for one, and mostly gets the pay_id. */
  trans: string | undefined;
  /** The sum given back by /cancel and /refund together; at most the amount. */
  givenBack: bigint;
  /** Nothing more is given back after a cancel, even if it gave back only part. */
  cancelled: boolean;
}

/** How much of a paid payment can still be given back, in minor units. */
export const refundableAmount = ({ amount, givenBack, cancelled }: QrPayment) => (cancelled ? 0n : amount - givenBack);

/** The error texts of a payment, or of giving it back, that failed. */
export const paymentFailures: Readonly<Record<Exclude<EmulatedEnd, "approved">, readonly [state: string, cure: string]>> = {
  declined: ["the payment system declined it", "choose another way to pay"],
  cancelled: ["the customer cancelled it", "start again if it is still wanted"],
  "card-timeout": ["nobody paid in time", "start again if it is still wanted"],
  reversed: ["it was paid and then reversed", "start again if it is still wanted"],
  exhausted: ["less than this is left of the payment", "look at what was given back"],
};
