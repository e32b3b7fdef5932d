// This plain script runs before anything is painted. It uses the theme chosen on the page of this address.
{
  const apply = () => {
    const theme = localStorage.getItem("theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
    else delete document.documentElement.dataset["theme"];
  };
  apply();
  addEventListener("storage", apply);
}
