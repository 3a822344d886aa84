/**
 * What the contracts' schemas are made of, as far as a type sees it: each carries the type of its values. It stands in the
 * package in place of the schema library's own types, which need a newer TypeScript and the library itself.
 */
export interface TSchema {
  readonly "~static": unknown;
}
interface Schema<T> extends TSchema {
  readonly "~static": T;
}
/** The type of a schema's values. */
export type Static<S extends TSchema> = S["~static"];

type OptionalKeys<P> = { [K in keyof P]: P[K] extends { readonly "~optional": true } ? K : never }[keyof P];
type TypeOf<S> = S extends { readonly "~static": infer T } ? T : never;

export type TString = Schema<string>;
export type TInteger = Schema<number>;
export type TNumber = Schema<number>;
export type TBoolean = Schema<boolean>;
export type TNull = Schema<null>;
export type TUnknown = Schema<unknown>;
export type TEnum<Values extends readonly unknown[]> = Schema<Values[number]>;
export type TArray<Item> = Schema<TypeOf<Item>[]>;
export type TUnion<Options extends readonly unknown[]> = Schema<TypeOf<Options[number]>>;
export type TOptional<S extends TSchema> = S & { readonly "~optional": true };
export type TObject<P> = Schema<
  { [K in Exclude<keyof P, OptionalKeys<P>>]: TypeOf<P[K]> } & { [K in OptionalKeys<P>]?: TypeOf<P[K]> }
>;
