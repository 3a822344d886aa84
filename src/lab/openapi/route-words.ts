import type { ContractName } from "../../core/call.ts";

/** The purpose of each route, in a line: the contracts' own words if they have some (bank and qr: Endpoints; fiscal: Endpoints, States). */
export const routeWords: Readonly<Record<ContractName, Readonly<Record<string, string>>>> = {
  fiscal: {
    "/supported_operations": "List the routes that the terminal offers",
    "/sale": "Fiscalise a sale, and print its receipt",
    "/refund": "Fiscalise a refund, and print its receipt",
    "/check_status": "Ask what became of a document",
    "/check_copy": "Print a copy of a closed document",
    "/abort": "Abort the document of an external id",
    "/open_shift": "Open the shift",
    "/close_shift": "Close the shift, with its metrics",
    "/check_shift": "Ask whether the shift is open, and for the cash in the drawer",
    "/x_report": "Make an X report of the open shift",
    "/deposit": "Register cash that is put into the drawer",
    "/withdraw": "Register cash that is taken out of the drawer",
    "/dates_report": "Make a report over a range of dates",
    "/get_info": "Ask for the fiscal data of the terminal",
  },
  bank: {
    "/supported_operations": "List the operations that the terminal offers, by its configuration",
    "/terminals": "List the valid pairs of terminal and merchant",
    "/sale": "Start a card payment",
    "/preauth": "Start a preauthorization",
    "/confirm": "Start the confirmation of a preauthorization",
    "/cancel": "Start the cancellation of an operation",
    "/refund": "Start a refund",
    "/xreport": "Start an X report",
    "/close-shift": "Start the end of the business day (settlement)",
    "/terminate": "Terminate the active terminal session",
    "/abort": "Attempt to stop the operation of a pay_id",
    "/check": "Ask what became of an operation",
  },
  qr: {
    "/check_connection": "Discover the enabled payment systems and their operations",
    "/showqrcode": "Start a payment: the code is shown to the customer",
    "/check": "Ask for the state of a payment",
    "/cancel": "Cancel a payment",
    "/refund": "Refund a payment",
    "/final_confirm": "Hand the fiscal data of a payment on; optional after payment",
  },
};
