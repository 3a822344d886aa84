#!/bin/sh
# A sale, sent again until its end is known: ./till.sh KEY AMOUNT [ADDRESS], the amount in minor units.
case $2 in '' | *[!0-9]*) echo "Usage: $0 KEY AMOUNT [ADDRESS], such as A-1 1500" >&2 && exit 64 ;; esac
sale='{"pay_id":"'$1'","amount":'$2',"currency_name":"EUR"}'
blank='

'
header() { printf '%s\n' "$answer" | sed '/^$/q' | grep -i "^$1:" | sed 's/^[^:]*: *//'; }

while :; do
  answer=$(curl -s -i -m 90 -H 'Prefer: wait=60' -d "$sale" "${3:-http://localhost:8888}/sale" | tr -d '\r')
  word=$(header X-Posline-Result)
  case $word$(header X-Posline-Repeat-Guard):${answer#HTTP/* } in
    failed*:503*) ;; # Nothing was sent: the same call again.
    approved*:* | declined*:* | failed*:* | reversed*:*)
      echo "$word" && printf '%s\n' "${answer#*"$blank"}" >&2
      [ "$word" = approved ] && exit 0 || exit 1 ;;
    pendingoff:* | unknownoff:*) echo "$word, and no journal: look at the terminal, and do not sell again before" >&2 && exit 3 ;;
    :408*) ;; # Too slow: as when it is not there, or cut, the same call again.
    :[234]*"$blank"?*) printf '%s\n' "$answer" >&2 && exit 2 ;;
  esac
  sleep "$(header Retry-After)" 2>/dev/null || sleep 2
done
