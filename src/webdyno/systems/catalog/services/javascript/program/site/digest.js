import { createHash } from 'node:crypto';

// Size and SHA-256 of a body, read as it comes.
export async function digestOf(stream) {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of stream) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { bytes, sha256: hash.digest('hex') };
}
