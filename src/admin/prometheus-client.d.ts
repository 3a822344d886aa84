/** The parts of the library that are imported one by one; its own types cover only the whole. */

declare module "@prometheus-io/client/lib/counter.js" {
  import { Counter } from "@prometheus-io/client";
  export default Counter;
}

declare module "@prometheus-io/client/lib/gauge.js" {
  import { Gauge } from "@prometheus-io/client";
  export default Gauge;
}

declare module "@prometheus-io/client/lib/registry.js" {
  import { Registry } from "@prometheus-io/client";
  export default Registry;
}
