import { formatCount, translate } from "../words/translate.ts";
/** A whole number with the separators of the person's language: `12,345`. */
export function toCountText(count: number): string {
  return formatCount(count);
}

/** An amount in US dollars: two decimals from a cent on, otherwise two significant digits: `$12.30`, `$0.0042`. */
export function toUsdText(usd: number): string {
  if (usd === 0) return "$0";
  if (usd >= 0.01) {
    const [whole = "", cents = ""] = usd.toFixed(2).split(".");
    return `$${whole.replaceAll(/\B(?=(?:\d{3})+$)/g, ",")}.${cents}`;
  }
  const digits = Math.min(9, 1 - Math.floor(Math.log10(usd)));
  return `$${usd.toFixed(digits)}`;
}

/** A time span: `under 0.1 s`, `0.8 s`, `12 s`, `3 min 20 s`. */
export function toSecondsText(ms: number): string {
  if (ms < 95) return translate("time.under", { seconds: "0.1" });
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** Minutes of a recording: `0.4`, `12`. */
export function toMinutesText(seconds: number): string {
  const minutes = seconds / 60;
  if (minutes === 0) return "0";
  return minutes < 9.95 ? String(Math.max(0.1, Math.round(minutes * 10) / 10)) : toCountText(minutes);
}
