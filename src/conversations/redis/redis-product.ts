/** The name of the product by its `INFO`: Valkey says that it is Redis too, for programs that know only that. */
export function productOf(info: string): "Redis" | "Valkey" {
  return /^server_name:valkey\r?$/m.test(info) ? "Valkey" : "Redis";
}
