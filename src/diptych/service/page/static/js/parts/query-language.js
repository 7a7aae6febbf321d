// The query language, for queries that join words with pictures: "2:red car + item:abc - snow".

const SIGN = /^([+-])(?=\s|$)/;
const OPERATOR = /\s+([+-])(?=\s|$)/;
const QUOTED = /^"([^"]*)"(?=\s+[+-](?:\s|$)|$)/;
const WEIGHT = /^(\d+(?:\.\d*)?|\.\d+):(?!\d)\s*(?=\S)/;

function term(body, sign) {
  const weight = body.match(WEIGHT);
  const value = weight ? body.slice(weight[0].length) : body;
  const amount = weight ? sign * Number(weight[1]) : sign;
  return value.startsWith("item:") ? { item: value.slice(5), weight: amount } : { text: value, weight: amount };
}

export function readTerms(text) {
  let rest = text.trim();
  const terms = [];
  const first = rest.match(SIGN);
  let sign = first?.[1] === "-" ? -1 : 1;
  if (first) rest = rest.slice(1).trimStart();
  while (rest) {
    const quoted = rest.match(QUOTED);
    const operator = rest.slice(quoted?.[0].length ?? 0).match(OPERATOR);
    const end = operator ? (quoted?.[0].length ?? 0) + operator.index : rest.length;
    const body = quoted ? quoted[1] : rest.slice(0, end);
    if (body.trim()) terms.push(term(body.trim(), sign));
    sign = operator?.[1] === "-" ? -1 : 1;
    rest = operator ? rest.slice(end + operator[0].length).trimStart() : "";
  }
  return terms;
}

// The part that is being typed, so that suggestions replace it alone.
export function lastTerm(text) {
  const start = Math.max(text.lastIndexOf(" + "), text.lastIndexOf(" - "));
  return start < 0 ? ["", text] : [text.slice(0, start + 3), text.slice(start + 3)];
}
