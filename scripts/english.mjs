// `node scripts/english.mjs [file …]`: checks the English of comments, texts and pages against docs/style.md. Prints
// each problem as `file:line: …`, and exits with 1 when there is one.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import ts from 'typescript';
import { root } from './setup.mjs';

const widest = 120;

/** Words and phrases that style.md does not allow, as patterns. */
const unwanted = [
  'whoever',
  'whomever',
  'whatever',
  'nobody',
  'whose',
  'whom',
  'for ever',
  'of ours',
  'of theirs',
  'of its own +accord',
  '(?:is|are|was|were|be|been|being) told',
  'goes by',
  'go by',
  'just now',
  'all the +same',
  'what is +none',
  'by and +by',
  'somebody',
  'thereby',
  'therein',
  'hitherto',
  'lest',
];
const unwantedWords = new RegExp(`\\b(?:${unwanted.join('|')})\\b`, 'i');

/** First words of a doc comment that leave its subject open. */
const riddles = new Set([
  'What',
  'Whose',
  'Who',
  'Whoever',
  'Whom',
  'Of',
  'By',
  'For',
  'With',
  'Without',
  'Among',
  'Between',
  'Beside',
  'Behind',
  'Until',
  'Because',
]);

/**
 * Problems of a source text or a Markdown page.
 * @param {string} path decides how the text is read.
 * @param {string} text
 * @returns {{ line: number, problem: string }[]}
 */
export function problemsOf(path, text) {
  return path.endsWith('.md') ? problemsOfPage(text) : problemsOfSource(text);
}

function problemsOfSource(text) {
  const source = ts.createSourceFile('a.ts', text, ts.ScriptTarget.Latest, true);
  const lineAt = (position) => source.getLineAndCharacterOfPosition(position).line + 1;
  const found = [];
  for (const { start, end } of commentsOf(source)) {
    const comment = text.slice(start, end);
    found.push(...problemsOfText(comment, lineAt(start)));
    if (!comment.startsWith('/**')) continue;
    const [first] = /[A-Za-z]+/.exec(comment) ?? [];
    if (riddles.has(first)) found.push({ line: lineAt(start), problem: `a doc comment starts with "${first}"` });
  }
  for (const { start, end } of commentsOf(source))
    for (let line = lineAt(start); line <= lineAt(end); line++)
      found.push(...problemsOfWidth(text.split('\n', line).at(-1), line));
  for (const { position, prose } of proseOf(source)) found.push(...problemsOfText(prose, lineAt(position)));
  return found;
}

/** Skips code and tables, which are not prose. */
function problemsOfPage(text) {
  let isCode = false;
  return text.split('\n').flatMap((line, index) => {
    if (/^\s*```/.test(line)) isCode = !isCode;
    if (isCode || line.startsWith('|')) return [];
    return [...problemsOfText(line.replace(/`[^`]*`/g, ''), index + 1), ...problemsOfWidth(line, index + 1)];
  });
}

function problemsOfWidth({ length }, line) {
  return length > widest ? [{ line, problem: `${length} columns; at most ${widest} are allowed` }] : [];
}

function problemsOfText(text, firstLine) {
  return text.split('\n').flatMap((line, index) => {
    const [word] = unwantedWords.exec(line) ?? [];
    return word ? [{ line: firstLine + index, problem: `"${word}" is not allowed` }] : [];
  });
}

function commentsOf(source) {
  const found = new Map();
  const visit = (node) => {
    for (const ranges of [
      ts.getLeadingCommentRanges(source.text, node.pos),
      ts.getTrailingCommentRanges(source.text, node.end),
    ])
      for (const { pos: start, end } of ranges ?? []) found.set(start, { start, end });
    node.getChildren(source).forEach(visit);
  };
  visit(source);
  return [...found.values()];
}

/** String literals with at least three words: error texts, log lines, hints and titles of tests. */
function proseOf(source) {
  const found = [];
  const visit = (node) => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      const isSql = /\b(?:select|update|insert|delete|from|where)\b/.test(node.text);
      if (!isSql && /\w+ \w+ \w+/.test(node.text)) found.push({ position: node.getStart(source), prose: node.text });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function checkedFiles() {
  const all = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root });
  return all
    .toString()
    .split('\n')
    .filter(
      (path) => /^(?:src|test|bench|migrations|scripts)\/.*\.m?[jt]s$|\.md$/.test(path) && !/CHANGELOG/.test(path),
    );
}

if (process.argv[1] === import.meta.filename) {
  const given = process.argv.slice(2).map((path) => relative(root, resolve(path)));
  let count = 0;
  for (const path of given.length > 0 ? given : checkedFiles()) {
    let text;
    try {
      text = readFileSync(join(root, path), 'utf8');
    } catch {
      continue; // deleted, and not committed yet
    }
    for (const { line, problem } of problemsOf(path, text)) {
      process.stdout.write(`${path}:${line}: ${problem}\n`);
      count++;
    }
  }
  if (count > 0) process.stdout.write(`${count} problems; docs/style.md has the rules\n`);
  process.exitCode = count > 0 ? 1 : 0;
}
