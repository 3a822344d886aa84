/** The admin port's answers, as far as the page reads them. */

export interface Status {
  readonly version: string;
  readonly pid: number;
  readonly state: string;
  /** Why the next request would not be sent at once; none when all is well. */
  readonly reasons: readonly NotReady[];
  /** Facts that keep no till waiting, and should be known. */
  readonly notes: readonly string[];
  readonly lines: Readonly<Record<string, LineStatus>>;
  readonly services: Readonly<Record<string, ServiceStatus>>;
  readonly journal: JournalStatus;
}

export interface LineStatus {
  readonly state: string;
  readonly reason: string;
  readonly device: { readonly path: string; readonly node?: string };
  readonly queue?: { readonly waiting: number; readonly max: number };
  readonly counters: {
    readonly late: number;
    readonly losses: number;
    readonly discards: Readonly<Record<string, { readonly count: number }>>;
  };
}

export interface ServiceStatus {
  readonly line: string;
  readonly contract?: string;
  /** Absent if no terminal is at the other end, as in a gateway. */
  readonly heard?: {
    readonly state: string;
    readonly agoMs?: number;
    readonly reason?: string;
    readonly cure?: string;
  };
  readonly counters: { readonly answered: number; readonly notSent: number; readonly unknown: number };
}

export interface JournalStatus {
  /** `off`, `ok`, or why the journal can't be written. */
  readonly state: string;
  /** False if the journal has not been read: then older operations in doubt are not known. */
  readonly readable?: boolean;
  readonly unknown?: { readonly total: number; readonly newest: readonly UnknownOperation[] };
}

export interface UnknownOperation {
  readonly time: string;
  readonly requestId: string;
  readonly service: string;
  readonly route: string;
  readonly key?: string;
  readonly amount?: string;
  readonly currency?: string;
  readonly cause: string;
}

type Named = Pick<UnknownOperation, "service" | "route" | "key" | "amount" | "currency">;

/** `GET /explain?key=K`. */
export interface ExplainedKey {
  readonly operations: readonly Explanation[];
  readonly notes: readonly string[];
}

export interface Explanation extends Named {
  readonly moments: readonly { readonly timeMs: number; readonly text: string }[];
  readonly result: string;
  readonly proof: string;
  readonly todo: string;
}

/** The answer to `POST /journal/settle`. */
export interface SettledOperations {
  readonly settled: readonly (Named & { readonly result: "approved" | "closed" | "failed" })[];
}

export interface NotReady {
  readonly what: string;
  readonly line?: string;
  readonly service?: string;
  readonly state: string;
  readonly reason: string;
  readonly cure: string;
}

/** An event `exchange`: one phase of one request. */
export interface ExchangeEvent {
  readonly time: string;
  readonly requestId: string;
  /** An id of its own for each call; a request id may come twice. */
  readonly callId: string;
  /** Of a question of posline's own: the call whose operation it asks about. */
  readonly about?: string;
  readonly service: string;
  readonly route: string;
  readonly phase: "waiting" | "sent" | "written" | "replying" | "ended";
  readonly key?: string;
  /** Minor units. */
  readonly amount?: string;
  readonly currency?: string;
  // Of `ended` alone.
  readonly result?: string;
  readonly httpStatus?: number;
  readonly outcome?: "answered" | "not-sent" | "unknown";
  readonly reason?: string;
  readonly status?: string;
  readonly code?: number;
  readonly queueMs?: number;
  readonly lineMs?: number;
  readonly requestMs?: number;
  readonly terminalMs?: number;
  readonly replyMs?: number;
  readonly message?: string;
}

/** An event `operation`: what became of one whose own answer didn't say it. */
export interface OperationEvent {
  /** Absent if an earlier process sent it. */
  readonly callId?: string;
  readonly state: "unknown" | "settled";
  readonly result?: string;
}

/** The answer to `POST /test` of a service alone. */
export interface TestAnswer {
  readonly ms?: number;
  readonly offer?: {
    readonly operations?: readonly string[];
    readonly systems?: readonly { readonly name: string; readonly operations: readonly string[] }[];
  };
  readonly error?: string;
}

/** `GET /test`: the last test sale of each service. */
export interface TestView {
  readonly sales: Readonly<Record<string, SaleTest>>;
}

export interface SaleTest {
  readonly amount: number;
  readonly currency: string;
  readonly steps: readonly { readonly time: string; readonly route: string; readonly key: string; readonly type: string }[];
  /** Absent while it is under way. */
  readonly end?: "given-back" | "kept" | "in-doubt" | "back-in-doubt" | "not-approved" | "not-sent";
  readonly message?: string;
}

/** `GET /setup`, where posline has a way to write its configuration. */
export interface SetupView {
  readonly isRunning: boolean;
  readonly messages: readonly SetupMessage[];
}

/** What a setup says, one of these at a time. */
export interface SetupMessage {
  readonly say?: string;
  /** A question, and what it is for. */
  readonly ask?: number;
  readonly for?: "device" | "merchant-id" | "write";
  readonly refused?: string;
  readonly devices?: readonly { readonly path: string; readonly words: string }[];
  readonly diff?: string;
  readonly end?: "written" | "unchanged" | "declined";
  readonly error?: string;
}

/** `GET /emulator`, if an emulator runs. */
export interface EmulatorView {
  readonly now: string;
  readonly forced: readonly {
    readonly service: string;
    readonly route?: string;
    readonly outcome?: string;
    readonly fault?: string;
  }[];
  readonly chances: Readonly<Record<string, number>>;
}
