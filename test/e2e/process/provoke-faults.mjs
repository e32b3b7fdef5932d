// A test preloads this with --import. On demand, it makes a fault in code that nothing awaits.
process.on("SIGUSR2", () => {
  void Promise.reject(new Error("provoked rejection, key a-key-for-the-test"));
});
process.on("SIGHUP", () => {
  throw new Error("provoked exception, key a-key-for-the-test");
});
