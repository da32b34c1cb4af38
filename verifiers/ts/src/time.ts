/** RFC 3339, section 5.6: `Date.parse` reads both more and less. */

const FORM =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))$/;

// The years 0000 to 9999 of UTC.
const FIRST = -62_167_219_200_000;
const LAST = 253_402_300_799_999;

/** Milliseconds since 1970; further digits are cut, a leap second counts as the second before it. */
export function rfc3339(text: string): number | undefined {
  const found = FORM.exec(text);
  if (!found) return undefined;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map(Number) as [number, number, number, number, number, number];
  const [fraction = "", sign, hours, minutes] = found.slice(7);
  if (hour > 23 || minute > 59 || second > 60 || Number(hours ?? 0) > 23 || Number(minutes ?? 0) > 59) return undefined;
  const date = new Date(0);
  // Not `Date.UTC`: it moves the years 0 to 99 into another century.
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  date.setUTCHours(hour, minute, Math.min(second, 59), Number(fraction.padEnd(3, "0").slice(0, 3)));
  const offset = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000;
  const moment = date.getTime() - (sign === "-" ? -offset : offset);
  return moment >= FIRST && moment <= LAST ? moment : undefined;
}
