<?php
// A sale that survives anything: php till.php KEY AMOUNT, the amount in minor units. It needs php-curl.
$exits = ['approved' => 0, 'declined' => 1, 'failed' => 1, 'reversed' => 1];
$curl = curl_init('http://localhost:8888/sale');
curl_setopt_array($curl, [
    CURLOPT_POSTFIELDS => json_encode(['pay_id' => $argv[1], 'amount' => (int) $argv[2], 'currency_name' => 'EUR']),
    CURLOPT_HTTPHEADER => ['Content-Type: application/json', 'Prefer: wait=60'],
    CURLOPT_HEADERFUNCTION => function ($curl, $line) use (&$headers) {
        [$name, $value] = explode(':', $line, 2) + ['', ''];
        $headers[strtolower($name)] = trim($value);
        return strlen($line);
    },
    CURLOPT_RETURNTRANSFER => true,
    CURLOPT_TIMEOUT => 90,
]);
while (true) {
    $headers = [];
    $text = curl_exec($curl); // False where it is not there, or cut: the same call again.
    $word = $headers['x-posline-result'] ?? '';
    $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
    if (isset($exits[$word])) {
        echo "$word\n";
        exit($exits[$word]);
    }
    if ($word === '' && $text && $status < 500 && $status !== 408) {
        fwrite(STDERR, "$status $text\n");
        exit(2);
    }
    sleep((int) ($headers['retry-after'] ?? 0) ?: 2);
}
