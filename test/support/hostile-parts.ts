/** Texts that are repeated to make a parser work: the delimiters of Parley's parsers, and what nests. */
export const hostileParts: readonly string[] = [
  // These are white space.
  ..." |\t|\n|\r\n|\u00a0|\u2028| \n|a |\ta".split("|"),
  // These are words and digits without an end.
  ..."a|A1|0|1,|1_|a.|-|_|.|é|日|a-a".split("|"),
  // These are brackets, links and pictures.
  ..."[|]|(|)|![|](|[](|![](|[a](b|![a](https://a|[[|<|>|< |<a|<@|<@1|<#1|<!|<a:|</a|</|<t:1".split("|"),
  ..."<!--|-->|<?|?>|<!doctype svg|<!doctype svg>|<!doctype svg[|<!doctype svg []>|<svg|<title|<title>|<a\n".split(
    "|",
  ),
  // These are code, emphasis, quotes, tables, headings and rules.
  ..."`|``|```|```\n|````|`a|~~~|~~~\n|*|* |**|__|_a|>|> |> > |>a\n".split("|"),
  ..."#|# |###### |#### #|- |1. |1) |- - |* * |\n- |\n1. ".split("|"),
  ..."|,| ,|a|\n|,|-|,|--|\n,:-:|,\\|,\\\\".split(","),
  "|\n|-\n",
  "a|b\n-|-\n",
  // These are quotation marks.
  ...'"|\'|“|”|„|\\"|="|a="'.split("|"),
  // These are addresses, headers, options and secrets.
  ...'http://|https://|https://a|https://a?|a://|a:|a: |:a:|:|;|; |;a=|;a="|@|a@|://|?|#a|&|&lt;|%22'.split(
    "|",
  ),
  ...'data:|data:image/|data:image/png;base64,|![](data:image/|data:a;|data:a;a=a|name:|prompt:"|image:'.split(
    "|",
  ),
  ..."sk-|sk-aaaa|Bearer |bearer  |basic a|Bot |xoxb-".split("|"),
  ...'prompt:a |\n\n|: |data: |data: a\n|data: {}\n\n|event: error\n|{|}|{"a":|[1,|"a",'.split("|"),
  // These are words of the patterns, without what would end them.
  ..."model |exceed token |exceeds |does not support |not support image |rotate |turn a |make a |paint red ".split(
    "|",
  ),
  ...'create a |generate |picture |1 char|1 |9 words|k word|12 row|1000|1, |ago |one |message |add "a |10x'.split(
    "|",
  ),
  // These are surrogate pairs, lone surrogates, combining marks, joiners, flags and controls.
  ..."🦊|\ud83e|\udd8a|e\u0301|\u0301|👨\u200d|🇩🇪|🇩|\u200b|\u202e|\u0000|\u001b|\ufeff|\u1100|がが".split(
    "|",
  ),
];
