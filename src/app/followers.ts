import { contracts } from "../contract/contracts.ts";
import type { Handler, ServiceName } from "../core/call.ts";
import type { OperationHistory } from "../core/followed.ts";
import { Follower, type FollowerOptions } from "../follow/follower.ts";
import { InFlight, joined } from "../follow/joined.ts";
import { Turns } from "../follow/turns.ts";
import type { Served } from "./served.ts";

/** The followers of a bridge's services. What they follow outlasts a new configuration, and is asked about as that one says. */
export class Followers {
  readonly #history: OperationHistory | undefined;
  readonly #followers = new Map<ServiceName, Follower>();
  /** By which their services are asked once the configuration that is being prepared is taken. */
  readonly #prepared = new Map<ServiceName, FollowerOptions>();
  /** By which they are asked now. */
  readonly #taken = new Map<ServiceName, FollowerOptions>();
  readonly #inFlight = new Map<ServiceName, InFlight>();
  /** By line. */
  readonly #turns = new Map<string, Turns>();

  constructor(history: OperationHistory | undefined) {
    this.#history = history;
  }

  /**
   * Prepares a service's handler: identical calls are one, and an operation is followed where its caller wants it.
   * @param device The mark of its line's device.
   */
  prepare({ service, config: { contract: name, line, merchantId } }: Served, caller: Handler, device?: string): Handler {
    const contract = contracts[name];
    const inFlight = this.#inFlight.get(service) ?? new InFlight();
    this.#inFlight.set(service, inFlight);
    const options: FollowerOptions = {
      contract,
      service,
      handler: joined(contract, caller, inFlight),
      merchantId,
      history: this.#history,
      device,
      turns: this.turnsOf(line),
    };
    this.#prepared.set(service, options);
    return (call) => (call.followMs === undefined ? options.handler(call) : this.#followerOf(service, options).follow(call));
  }

  /** The configuration that was prepared is refused. */
  drop(): void {
    this.#prepared.clear();
  }

  /** The configuration that was prepared is taken. */
  take(): void {
    for (const [service, options] of this.#prepared) {
      this.#taken.set(service, options);
      this.#followers.get(service)?.use(options);
    }
    this.#prepared.clear();
  }

  /** A request may have come before the configuration that is in force: it is followed by this one all the same. */
  #followerOf(service: ServiceName, options: FollowerOptions): Follower {
    const follower = this.#followers.get(service) ?? new Follower(this.#taken.get(service) ?? options);
    this.#followers.set(service, follower);
    return follower;
  }

  /** Whose turn it is to ask by itself on a line. */
  turnsOf(line: string): Turns {
    const turns = this.#turns.get(line) ?? new Turns();
    this.#turns.set(line, turns);
    return turns;
  }

  /** Whether a call may be identical to one that waits or is out: it gets that one's answer, though its line takes no others. */
  mayJoin(service: ServiceName, route: string, bodyBytes: number | undefined): boolean {
    return this.#inFlight.get(service)?.mayHave(route, bodyBytes) === true;
  }

  isFollowed(service: ServiceName, route: string, key: string): boolean {
    return this.#followers.get(service)?.isFollowed(route, key) === true;
  }

  /** Each caller that waits is answered what is known. */
  stop(): void {
    for (const follower of this.#followers.values()) follower.stop();
  }
}
