/**
 * What the contracts' schemas are made of and checked with; the only importer of typebox's code.
 *
 * It is a package of some 500 small modules, of which few are needed for this. Named here, the build finds out which, and makes
 * one module of them.
 */

export type * from "typebox";
export { Array, Boolean, Enum, Integer, Null, Number, Object, Optional, String, Union, Unknown } from "typebox";
export { Check, Errors } from "typebox/schema";
