<?php
// A sale, sent again until its end is known: php till.php KEY AMOUNT [ADDRESS], the amount in minor units. It needs php-curl.
ctype_digit($argv[2] ?? '') || (fwrite(STDERR, "Usage: php till.php KEY AMOUNT [ADDRESS], such as A-1 1500\n") && exit(64));
$exits = ['approved' => 0, 'declined' => 1, 'failed' => 1, 'reversed' => 1];
$curl = curl_init(($argv[3] ?? 'http://localhost:8888') . '/sale');
curl_setopt_array($curl, [
    CURLOPT_POSTFIELDS => json_encode(['pay_id' => $argv[1], 'amount' => (int) $argv[2], 'currency_name' => 'EUR']),
    CURLOPT_HTTPHEADER => ['Content-Type: application/json', 'Prefer: wait=60', 'Expect:'],
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_HEADER => true,
    CURLOPT_TIMEOUT => 90,
]);
while (true) {
    // No body where posline is not there, or its answer was cut: the same call again.
    [$head, $body] = explode("\r\n\r\n", (string) curl_exec($curl), 2) + ['', ''];
    $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
    $word = preg_match('/^X-Posline-Result: *(\w+)/mi', $head, $found) ? $found[1] : '';
    if (isset($exits[$word]) && "$word$status" !== 'failed503') { // That: nothing was sent, so the same call again.
        echo "$word\n";
        fwrite(STDERR, "$body\n");
        exit($exits[$word]);
    } elseif (in_array($word, ['pending', 'unknown']) && preg_match('/^X-Posline-Repeat-Guard: *off/mi', $head)) {
        fwrite(STDERR, "$word, and no journal: look at the terminal, and do not sell again before\n");
        exit(3);
    } elseif ($word === '' && $body !== '' && $status < 500 && $status !== 408) {
        fwrite(STDERR, "$status $body\n");
        exit(2);
    }
    sleep(preg_match('/^Retry-After: *(\d+)/mi', $head, $found) ? (int) $found[1] : 2);
}
