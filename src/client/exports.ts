/** The package's public API, on a till as in a page; how a client is made is each entry's own. */

export type { Clock } from "../settle/clock.ts";
export type { Answer, Transport, TransportRequest, UnreachableReason } from "../settle/transport.ts";
export type {
  Client,
  ClientWith,
  HttpClientOptions,
  NamedOptions,
  NamedTarget,
  ServiceClient,
  ServicesOptions,
  ServiceTarget,
} from "./client.ts";
export { createClientOver } from "./client.ts";
export { CallError, NotSentError, RejectedError, UnknownError } from "./errors.ts";
export { newKey } from "./key.ts";
export type { CallOptions, MerchantId } from "./remote-service.ts";
export type { Settled, SettleEvent, SettleEventType, SettleOptions, SettleStep } from "./settle-types.ts";
export type { Token } from "./token.ts";
export type { BodyOf, DataOf, OperationBody, OperationOf, ReplyOf, ResultOf, RouteOf } from "./types.ts";
