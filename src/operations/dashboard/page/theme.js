// A plain script, run before anything is painted. The theme that was chosen on the page of the same address counts here.
{
  const apply = () => {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
    else delete document.documentElement.dataset["theme"];
  };
  apply();
  addEventListener("storage", apply);
}
