// This plain script runs before anything is painted, since a page of another theme would flash.
{
  const theme = localStorage.getItem("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset["theme"] = theme;
}
