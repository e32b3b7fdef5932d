// Preloaded by a test with --import: a fault in code that nothing awaits, when the test asks for it.
process.on("SIGUSR2", () => {
  void Promise.reject(new Error("provoked rejection, key a-key-for-the-test"));
});
process.on("SIGHUP", () => {
  throw new Error("provoked exception, key a-key-for-the-test");
});
