const dayMs = 24 * 60 * 60 * 1000;

/** The day of a time in Unix ms as `YYYY-MM-DD`, in UTC. */
export function toUtcDay(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** When a day (`YYYY-MM-DD`, UTC) ends, in Unix ms. */
export function endOfUtcDay(day: string): number {
  return Date.parse(`${day}T00:00:00Z`) + dayMs;
}

/** The day before or after by so many days. */
export function addUtcDays(day: string, days: number): string {
  return toUtcDay(Date.parse(`${day}T00:00:00Z`) + days * dayMs);
}
