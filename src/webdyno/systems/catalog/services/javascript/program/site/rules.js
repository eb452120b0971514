// What the apps here take from clients, and what they refuse.

export const HIGHEST = 2 ** 31 - 1; // of PostgreSQL's type integer
export const NAME = '^[^\\0\\p{Surrogate}]{1,100}$'; // text that PostgreSQL can keep

// A whole number from 1 to the highest; 1 for what isn't one.
export function whole(text, highest) {
  return /^\d+$/.test(text) ? Math.min(Math.max(Number(text), 1), highest) : 1;
}

// The id in a path; 0, which no item has, for what isn't one.
export function idOf(text) {
  return /^\d{1,10}$/.test(text) && Number(text) <= HIGHEST ? Number(text) : 0;
}

// What is wrong with an item from a client, if anything is.
export function faultOf(item) {
  if (item === null || typeof item !== 'object') return 'an item is a JSON object';
  if (typeof item.name !== 'string' || !new RegExp(NAME, 'u').test(item.name)) {
    return 'name should have 1 to 100 characters';
  }
  if (!Number.isInteger(item.price) || item.price < 0 || item.price > HIGHEST) {
    return 'price should be a whole number, 0 or more';
  }
}
