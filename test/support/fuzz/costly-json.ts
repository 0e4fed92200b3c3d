const listOf = (length: number, item: (index: number) => string): string =>
  `[${Array.from({ length }, (_, index) => item(index)).join()}]`;
const objectOf = (length: number, name: string): string =>
  `{${Array.from({ length }, (_, index) => `"${name}${index}":0`).join()}}`;

/** JSON texts of up to a megabyte that take longest to read and write, within the limits of requests and answers. */
export const costlyJson = {
  'an object of 19,000 members': objectOf(19_000, 'm'),
  '90 objects of 900 members': listOf(90, (index) => objectOf(900, `m${index}x`)),
  '300 objects of 230 members': listOf(300, (index) => objectOf(230, `m${index}x`)),
  '10,000 integers that a double cannot hold': listOf(10_000, (index) => `12345678901234567${index}`),
  '99,000 empty objects': listOf(99_000, () => '{}'),
  '95,000 texts': listOf(95_000, (index) => `"t${index}"`),
  '95,000 numbers': listOf(95_000, (index) => `${index}.5`),
  '12,000 rows': listOf(12_000, (index) => `{"id":${index},"name":"name ${index}","when":"2026-01-01","is":true}`),
};

/** Answers of MCP servers that are refused, because reading them would take a second. */
export const tooCostlyJson = {
  '4,000,000 numbers': `[${'1,'.repeat(4_000_000)}1]`,
  'an object of 500,000 members': objectOf(500_000, 'm'),
};
