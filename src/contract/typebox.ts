/**
 * The parts of typebox that make and check the contracts' schemas; the only importer of typebox's code.
 *
 * The package has some 500 small modules, of which few are needed for this. Named here, the build finds out which, and makes one module of
 * them.
 */

export type * from "typebox";
export { Array, Boolean, Enum, Integer, Null, Number, Object, Optional, String, Union, Unknown } from "typebox";
export { Check, Errors } from "typebox/schema";
