import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

/** Joins a word that this file itself must not contain. */
const word = (...parts: string[]): string => parts.join('');
const [nobody, whoever, whose] = [word('no', 'body'), word('who', 'ever'), word('who', 'se')];
const [isTold, goesBy, forEver] = [word('is', ' told'), word('goes', ' by'), word('for', ' ever')];

const checker = join(__dirname, '..', '..', 'scripts', 'english.mjs');

const bad: [what: string, file: string, text: string, problems: string[]][] = [
  ['a comment with an unwanted word', 'a.ts', `// Here ${nobody} waits.\n`, [`1: "${nobody}" is not allowed`]],
  ['each line of a comment', 'a.ts', `/*\n * One.\n * For ${whoever}.\n */\n`, [`3: "${whoever}" is not allowed`]],
  ['a doc comment without a subject', 'a.ts', '/** What is left. */\n', ['1: a doc comment starts with "What"']],
  ['a comment that is too wide', 'a.ts', `// ${'x'.repeat(118)}\n`, ['1: 121 columns; at most 120 are allowed']],
  ['the text of an error', 'a.ts', `throw new Error('it ${isTold} later');\n`, [`1: "${isTold}" is not allowed`]],
  ['a part of a template', 'a.ts', 'f(`${b} ' + whose + ' name is ${c}`);\n', [`1: "${whose}" is not allowed`]],
  ['the title of a test', 'a.mjs', `it('${goesBy} the card', f);\n`, [`1: "${goesBy}" is not allowed`]],
  ['a page that is too wide', 'a.md', `${'x '.repeat(61)}\n`, ['1: 122 columns; at most 120 are allowed']],
  ['a page', 'a.md', `One.\nIt runs ${forEver}.\n`, [`2: "${forEver}" is not allowed`]],
];
const good: [what: string, file: string, text: string][] = [
  ['plain English', 'a.ts', '/** Returns the caller. Throws `denied`. */\n// Why: the row may be gone.\n'],
  ['names and SQL', 'a.ts', `const ${whose} = 1;\nconst sql = 'select ${whose} from ${nobody} where a';\n`],
  ['long code', 'a.ts', `const a = '${'x'.repeat(150)}';\n`],
  [
    'code and tables of a page',
    'a.md',
    `Use \`${whose}\`.\n\`\`\`sh\n${nobody.repeat(30)}\n\`\`\`\n| ${whose} | ${nobody.repeat(30)} |\n`,
  ],
];

describe('the check of the English', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-english-'));
  const fileOf = (what: string, file: string): string => join(folder, `${what.replaceAll(' ', '-')}.${file}`);
  let output: string;

  beforeAll(async () => {
    const files = [...bad, ...good].map(([what, file, text]) => {
      writeFileSync(fileOf(what, file), text);
      return fileOf(what, file);
    });
    const run = promisify(execFile)(process.execPath, [checker, ...files]);
    ({ stdout: output } = await run.catch((error: unknown) => error as { stdout: string }));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const problemsIn = (what: string, file: string): string[] =>
    output.split('\n').flatMap((line) => {
      const [path, problem] = line.split(/:(?=\d+: )/);
      // The checker prints paths relative to the checkout.
      return path?.endsWith(basename(fileOf(what, file))) && problem !== undefined ? [problem] : [];
    });

  it.each(bad)('finds %s', (what, file, _text, problems) => {
    expect(problemsIn(what, file)).toEqual(problems);
  });

  it.each(good)('accepts %s', (what, file) => {
    expect(problemsIn(what, file)).toEqual([]);
  });
});
