// A plain script, run before anything is painted: otherwise a page of another theme would flash.
{
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
}
