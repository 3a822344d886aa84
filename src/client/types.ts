import type { Static, TSchema } from "typebox";
import type { BankTransactionResult, bankSchemas } from "../contract/schema-bank.ts";
import type { FiscalDocumentReply, fiscalSchemas } from "../contract/schema-fiscal.ts";
import type { qrSchemas } from "../contract/schema-qr.ts";
import type { ContractName } from "../core/call.ts";
import type { CallOptions } from "./remote-service.ts";

/**
 * The client's types, made of the contracts' schemas: nothing here exists at run time, and no schema library reaches a page.
 *
 * Integers are `number | bigint` on both sides. In what is sent either may be given; a number beyond 2^53 is refused, since it
 * has lost digits already. In what is answered a number is exact, and what a number can't hold exactly is a bigint.
 */

interface SchemasByService {
  readonly fiscal: typeof fiscalSchemas;
  readonly bank: typeof bankSchemas;
  readonly qr: typeof qrSchemas;
}

/** The routes of a service, with their slash. */
export type RouteOf<S extends ContractName> = keyof SchemasByService[S] & string;

type Camel<Path extends string> = Path extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Path extends `${infer Head}-${infer Tail}`
    ? `${Head}${Capitalize<Camel<Tail>>}`
    : Path;

/** A route as a method's name: `/check_status` is `checkStatus`, `/close-shift` is `closeShift`. */
export type MethodOf<Route extends string> = Route extends `/${infer Path}` ? Camel<Path> : never;

/** A static type in which every number may be a bigint. */
type Exact<T> = T extends number
  ? T | bigint
  : T extends readonly (infer Item)[]
    ? readonly Exact<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]: Exact<T[Key]> }
      : T;

type SideOf<Schemas, Side extends "request" | "reply"> =
  Schemas extends Readonly<Record<Side, infer Schema>> ? (Schema extends TSchema ? Exact<Static<Schema>> : undefined) : never;

/** A request's body; undefined for a route that takes none. */
export type BodyOf<S extends ContractName, Route extends RouteOf<S>> = SideOf<SchemasByService[S][Route], "request">;

/** A successful answer. Terminals send more fields than are documented; those are there, of unknown type. */
export type ReplyOf<S extends ContractName, Route extends RouteOf<S>> = SideOf<SchemasByService[S][Route], "reply"> & {
  readonly status: "success";
  readonly [field: string]: unknown;
};

type Method<Body, Reply> = Body extends undefined
  ? (options?: CallOptions) => Promise<Reply>
  : Record<never, never> extends Body
    ? (body?: Body, options?: CallOptions) => Promise<Reply>
    : (body: Body, options?: CallOptions) => Promise<Reply>;

/**
 * A service's routes as methods. Each sends one request, once, and resolves with an answer whose status is "success". Of a sale that says
 * that it has begun, and of a question about it that it may go on: not that it is paid, which `settle` says.
 * Each rejects with NotSentError, UnknownError or RejectedError.
 */
export type Methods<S extends ContractName> = {
  readonly [Route in RouteOf<S> as MethodOf<Route>]: Method<BodyOf<S, Route>, ReplyOf<S, Route>>;
};

interface FollowedRouteByService {
  readonly fiscal: "/sale" | "/refund" | "/deposit" | "/withdraw";
  readonly bank: "/sale" | "/preauth" | "/confirm" | "/cancel" | "/refund" | "/xreport" | "/close-shift";
  readonly qr: "/showqrcode" | "/cancel" | "/refund" | "/final_confirm";
}

/** By service and not by a generic condition, which TypeScript before 5.5 takes for another type at each use. */
type OperationByService = { readonly [S in ContractName]: MethodOf<FollowedRouteByService[S]> };

/** The operations of a service that can be followed to their end, as methods' names. */
export type OperationOf<S extends ContractName> = OperationByService[S];

type RouteNamed<S extends ContractName, Name extends string> = {
  readonly [Route in RouteOf<S>]: MethodOf<Route> extends Name ? Route : never;
}[RouteOf<S>];

interface KeyFieldByService {
  readonly fiscal: "documentExtID";
  readonly bank: "pay_id";
  readonly qr: "pay_id";
}

type KeyOptional<Body, Key extends string> = Omit<Body, Key> & { readonly [Field in Key]?: string | undefined };

/**
 * An operation's body; its key may be left out, and is then made. A qr payment may bring its own `trans`; what refers to a payment
 * (qr's other operations) has that payment's key, which can't be made here.
 */
export type OperationBody<S extends ContractName, Name extends OperationOf<S>> = S extends "qr"
  ? Name extends "showqrcode"
    ? KeyOptional<BodyOf<"qr", "/showqrcode">, "pay_id"> & { readonly trans?: string }
    : BodyOf<S, RouteNamed<S, Name>>
  : KeyOptional<BodyOf<S, RouteNamed<S, Name>>, KeyFieldByService[S]>;

interface ResultByService {
  readonly fiscal: "closed" | "failed" | "unprinted";
  readonly bank: "approved" | "declined" | "failed" | "reversed";
  readonly qr: "approved" | "declined" | "failed";
}

/**
 * How an operation of a service ended, as `X-Posline-Result` says; `unknown` where that isn't proven, `not-sent` where it was never sent.
 */
export type ResultOf<S extends ContractName> = ResultByService[S] | "unknown" | "not-sent";

interface DataByService {
  readonly fiscal: ReplyFields<Exact<FiscalDocumentReply>>;
  readonly bank: ReplyFields<Exact<BankTransactionResult>>;
  readonly qr: { readonly rrn?: unknown; readonly [field: string]: unknown };
}

/** What the service said of the operation: fiscal the document, bank and qr the answer's `data`. */
export type DataOf<S extends ContractName> = DataByService[S];

type ReplyFields<T> = T & { readonly [field: string]: unknown };
