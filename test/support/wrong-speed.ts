/** What a receiver makes of bytes that were sent at another speed: 8N1, sampled in the middle of its own bits. */
export function sampledAt(bytes: Buffer, sentBaud: number, readBaud: number): Buffer {
  const bits: number[] = Array.from({ length: 12 }, () => 1);
  for (const byte of bytes) bits.push(0, ...Array.from({ length: 8 }, (_, bit) => (byte >> bit) & 1), 1);
  const level = (at: number) => bits[Math.floor(at)] ?? 1;
  const step = sentBaud / readBaud;
  const read: number[] = [];
  for (let at = 0; at < bits.length; ) {
    if (level(at) === 1) {
      at += step / 4;
      continue;
    }
    let byte = 0;
    for (let bit = 0; bit < 8; bit++) byte |= level(at + (1.5 + bit) * step) << bit;
    read.push(byte);
    at += 9.5 * step;
  }
  return Buffer.from(read);
}
