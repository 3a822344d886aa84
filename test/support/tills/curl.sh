#!/bin/sh
# A till of curl and sh: curl.sh DO KEY AMOUNT [OF]. It sends one call with `Prefer: wait` until that has ended, and is judged by the rehearsal's tests.
do=$1 key=$2 amount=$3 of=$4
mkdir -p "$TILL_FOLDER"
blank='

'
header() { printf '%s\n' "$answer" | sed '/^$/q' | grep -i "^$1:" | sed 's/^[^:]*: *//'; }
field() { printf '%s\n' "$answer" | sed '1,/^$/d' | grep -o "\"$1\":\"*[^\",}]*" | head -n 1 | sed 's/^[^:]*:"*//'; }
kept() { cat "$TILL_FOLDER/$of.$1" 2>/dev/null; }
keep() { [ -z "$2" ] || { printf %s "$2" >"$TILL_FOLDER/$key.$1.$$" && mv "$TILL_FOLDER/$key.$1.$$" "$TILL_FOLDER/$key.$1"; }; }

# Sends a call until its end is known: $1 is the address, $2 the body.
settled() {
  while :; do
    answer=$(curl -s -i -m 90 -H 'Prefer: wait=60' -d "$2" "$1" | tr -d '\r')
    word=$(header X-Posline-Result)
    case $word:$(header X-Posline-Reason):${answer#HTTP/* } in
      failed:*:503*) ;; # Nothing was sent: the same call again.
      unknown:no-question:*) break ;;
      pending:* | unknown:*) ;;
      [a-z]*) break ;;
      :*:408*) ;;
      :*:[234]*"$blank"?*) printf '%s\n' "$answer" >&2 && exit 2 ;;
    esac
    sleep "$(header Retry-After)" 2>/dev/null || sleep 2
  done
}

form() {
  data=$(printf %s "$1" | base64 -w 0)
  sign=$(printf %s "$data$POSLINE_MERCHANT_ID" | sha1sum | cut -c 1-40 | tr -d '\n' | base64 -w 0)
  printf 'data=%s&sign=%s' "$data" "$sign" | sed 's/+/%2B/g'
}

document() {
  settled "$POSLINE_FISCAL_URL$1" "$(form "{\"documentExtID\":\"$key\",$2}")"
  keep documentID "$(field documentID)"
}

receipt() {
  paid='"code":"CARD"'
  [ -z "$(kept rrn)" ] || paid="\"trxParams\":{\"rrn\":\"$(kept rrn)\"}"
  item="{\"itemName\":\"${POSLINE_ITEM-Coffee}\",\"itemQty\":${POSLINE_QUANTITY-1000},\"itemAmount\":$amount,\"itemTaxes\":[{\"taxPrc\":1800}]}"
  printf '"items":[%s],"extraPayments":[{"amount":%s,%s}]' "$item" "$amount" "$paid"
}

card="\"pay_id\":\"$key\",\"amount\":$amount,\"currency_name\":\"EUR\""
payment="\"amount\":$amount,\"currency\":\"978\",\"currency_name\":\"EUR\",\"pay_system\":\"QRPAY\""
case $do in
  sale)
    settled "$POSLINE_BANK_URL/sale" "{$card}"
    keep rrn "$(field rrn)"
    ;;
  abort)
    (sleep 2; curl -s -m 30 -d "{\"pay_id\":\"$key\"}" "$POSLINE_BANK_URL/abort" >/dev/null) &
    settled "$POSLINE_BANK_URL/sale" "{$card}"
    ;;
  refund) settled "$POSLINE_BANK_URL/refund" "{$card,\"rrn\":\"$(kept rrn)\"}" ;;
  receipt) document /sale "$(receipt)" ;;
  return) document /refund "$(receipt),\"parentDocID\":\"$(kept documentID)\"" ;;
  cash-in) document /deposit "\"amount\":$amount" ;;
  qr)
    settled "$POSLINE_QR_URL/showqrcode" "{\"pay_id\":\"$key\",$payment}"
    keep trans "$(header X-Posline-Trans)" && keep rrn "$(field rrn)"
    ;;
  qr-refund)
    settled "$POSLINE_QR_URL/refund" "{\"pay_id\":\"$of\",$payment,\"trans\":\"$(kept trans)\",\"rrn\":\"$(kept rrn)\"}"
    ;;
  *) word=unsupported ;;
esac
echo "$word"
