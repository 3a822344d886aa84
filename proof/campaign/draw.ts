import fc from "fast-check";

/** The words in which worlds are drawn. The type of what is drawn is its drawing's: `Drawn<typeof step>`, so that each is said once. */

export type Drawn<Drawing> = Drawing extends fc.Arbitrary<infer Value> ? Value : never;

/** One of these values. */
export const one = <const Value>(...values: readonly Value[]): fc.Arbitrary<Value> => fc.constantFrom(...values);

/** A whole number within these bounds. */
export const between = (min: number, max: number) => fc.integer({ min, max });

/** One of these drawings, each by its weight. */
export function often<Parts extends readonly (readonly [weight: number, drawing: fc.Arbitrary<unknown>])[]>(...parts: Parts) {
  const drawing = fc.oneof(...parts.map(([weight, arbitrary]) => ({ weight, arbitrary })));
  // `fc.oneof` has the types of its arguments, which a mapped list has lost.
  return drawing as fc.Arbitrary<Drawn<Parts[number][1]>>;
}

/** A value so many times of ten, and else what is drawn. */
export const mostly = <const Value, Else>(ofTen: number, value: Value, other: fc.Arbitrary<Else>) =>
  often([ofTen, fc.constant(value)], [10 - ofTen, other]);

/** A deed by its name, or by one of several, with what it is done with. */
export const deed = <const Name extends string, Fields extends object>(
  names: Name | readonly Name[],
  fields: { [Field in keyof Fields]: fc.Arbitrary<Fields[Field]> },
) =>
  fc.record({
    do: typeof names === "string" ? fc.constant<Name>(names) : fc.constantFrom(...names),
    ...fields,
  }) as unknown as fc.Arbitrary<{ readonly do: Name } & Fields>;
