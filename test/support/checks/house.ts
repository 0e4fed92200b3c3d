import { posix } from 'node:path';
import ts from 'typescript';

/** The sources of a checkout. The key is the path from the root, with `/`; the value is the text. */
export type Sources = ReadonlyMap<string, string>;

/** One place where a file breaks an architecture rule. */
export interface Offence {
  readonly rule: Rule;
  readonly file: string;
  /** The import, word or figure that breaks the rule. */
  readonly what: string;
}

/** An import of a file: the specifier as written, and the project file that it names, if any. */
export interface Import {
  readonly specifier: string;
  readonly target?: string;
  /** True when the import does not exist at run time, so it closes no cycle. */
  readonly typeOnly: boolean;
}

interface Source {
  readonly path: string;
  readonly text: string;
  readonly tree: ts.SourceFile;
  readonly imports: readonly Import[];
  /** Index in `modules`; -1 for the entry files outside all modules. */
  readonly module: number;
  readonly isSpec: boolean;
}

/** The modules in their order. A module imports only modules with a lower or equal index (ARCHITECTURE.md). */
export const modules = [
  'kernel',
  'protocol',
  'platform',
  'audit',
  'policy',
  'approvals',
  'registry',
  'tasks',
  'a2a-client',
  'upstreams',
  'webhooks',
  'continuations',
  'a2a-server',
  'mcp-bridge',
  'a2e',
] as const;

const libraries = 3;
const pure = 2;
const entries =
  /^src\/(main|app|app\.module|cli|entities|org-tables|v8-flags|check-node|run-\w+)\.ts$|^src\/(cli|demo)\//;
const entity = /\.entity\.ts$/;
const purePackages =
  /^(zod|re2js|ajv(-formats)?|ajv\/dist\/20(19|20)\.js|@hpke\/(core|dhkem-x25519)|node:(crypto|vm|perf_hooks|buffer))$/;
const impureNames = new Set(['process', 'fetch', 'require', 'WebSocket', 'XMLHttpRequest']);
const outboundPackages = new Set(['undici', 'node:https', 'node:http2', 'node:tls', 'https', 'http2', 'tls']);
const internals = /\/library-internals\//;
const request = /Requested upstream: https:\/\/github\.com(\/[\w.-]+){2}\/(issues|pull)\/\d+|Missing public API: \w/;
const canary = /Canary test: `([\w./-]+\.spec\.ts)`/;
const maxFiles = 25;
const bounded = /^(src|test|bench)\//;
const maxLines = 400;
const maxMedianLines = 90;
const maxColumns = 120;

/** All rules with their checks. `test/checkout/architecture.spec.ts` tests each rule with a violation. */
const rules = {
  'known module': (source) =>
    source.module >= 0 || entries.test(source.path) || !source.path.startsWith('src/') ? [] : [source.path],
  'import downwards': (source, all) => targets(source).filter((target) => !mayReach(source, target, all)),
  'public root': (source) => targets(source).filter((target) => !isPublic(source, target)),
  'pure kernel and protocol': (source) => (isPure(source) ? impurities(source) : []),
  'foreign demo agents': (source) =>
    isDemoAgent(source.path) ? targets(source).filter((target) => !isDemoAgent(target)) : [],
  'dialects stay in protocol': (source) =>
    isCode(source) && !source.path.startsWith('src/protocol/') && !isDemoAgent(source.path)
      ? unique(source.text.match(/v0_?3/gi) ?? [])
      : [],
  'environment only in config': (source) =>
    isCode(source) && !source.path.startsWith('src/platform/config/') && reads(source, 'process', 'env')
      ? ['process.env']
      : [],
  'outbound only by safe-fetch': (source) =>
    isCode(source) && !source.path.startsWith('src/platform/http/outbound/safe-') ? outbound(source) : [],
  'no default export': (source) => (isCode(source) && hasDefaultExport(source.tree) ? ['export default'] : []),
  'no index.ts': (source) => (/(^|\/)index\.ts$/.test(source.path) ? [source.path] : []),
  'reasons of library internals': (source, all) =>
    isCode(source) && internals.test(source.path) ? missingReasons(source, all) : [],
  'size of a file': (source) => (linesOf(source.text) > maxLines ? [`${linesOf(source.text)} lines`] : []),
  'length of a line': (source) =>
    source.text
      .split('\n')
      .flatMap(({ length }, index) => (length > maxColumns ? [`line ${index + 1}: ${length} columns`] : [])),
} satisfies Record<string, (source: Source, all: Sources) => readonly string[]>;

const wholeRules = {
  'no cycles': (sources: readonly Source[]) =>
    cyclesOf(sources).map((cycle) => ({ file: cycle[0]!, what: cycle.join(' -> ') })),
  'folders in one direction': (sources: readonly Source[]) =>
    cyclesIn(folderArrows(sources)).map((cycle) => ({ file: cycle[0]!, what: cycle.join(' -> ') })),
  'files in a folder': (sources: readonly Source[]) =>
    [...countBy(sources.filter(({ path }) => bounded.test(path)).map(({ path }) => posix.dirname(path)))]
      .filter(([, count]) => count > maxFiles)
      .map(([file, count]) => ({ file, what: `${count} files` })),
  'median size': (sources: readonly Source[]) => {
    const sizes = sources.filter(isCode).map(({ text }) => linesOf(text));
    const median = sizes.sort((a, b) => a - b)[sizes.length >> 1] ?? 0;
    return median < maxMedianLines ? [] : [{ file: 'src', what: `${median} lines` }];
  },
};

export type Rule = keyof typeof rules | keyof typeof wholeRules;
export const allRules: readonly Rule[] = [...keysOf(rules), ...keysOf(wholeRules)];

/** Returns every place where the sources break a rule. */
export function offences(all: Sources): Offence[] {
  const sources = [...all].map(([path, text]) => read(path, text, all));
  return [
    ...sources.flatMap((source) =>
      keysOf(rules).flatMap((rule) => rules[rule](source, all).map((what) => ({ rule, file: source.path, what }))),
    ),
    ...keysOf(wholeRules).flatMap((rule) => wholeRules[rule](sources).map((found) => ({ rule, ...found }))),
  ];
}

/** Returns the imports of a file, in every form: import, export from, import(), import type, require. */
export function importsOf(tree: ts.SourceFile): { specifier: string; typeOnly: boolean }[] {
  const found: { specifier: string; typeOnly: boolean }[] = [];
  const visit = (node: ts.Node): void => {
    const specifier = specifierOf(node);
    if (specifier !== undefined) found.push({ specifier, typeOnly: isTypeOnly(node) });
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function read(path: string, text: string, all: Sources): Source {
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const imports = importsOf(tree).map((found) => ({ ...found, target: targetOf(path, found.specifier, all) }));
  return { path, text, tree, imports, module: indexOf(path), isSpec: path.endsWith('.spec.ts') };
}

function specifierOf(node: ts.Node): string | undefined {
  const literal = ((): ts.Node | undefined => {
    if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return node.moduleSpecifier;
    if (ts.isExternalModuleReference(node)) return node.expression;
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) return node.argument.literal;
    if (!ts.isCallExpression(node)) return undefined;
    const { expression } = node;
    const loads =
      expression.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(expression) && expression.text === 'require');
    return loads ? node.arguments[0] : undefined;
  })();
  return literal && ts.isStringLiteralLike(literal) ? literal.text : undefined;
}

function isTypeOnly(node: ts.Node): boolean {
  if (ts.isImportTypeNode(node)) return true;
  if (ts.isExportDeclaration(node)) return node.isTypeOnly;
  if (!ts.isImportDeclaration(node) || !node.importClause) return false;
  const { phaseModifier, name, namedBindings } = node.importClause;
  if (phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  return (
    !name &&
    namedBindings !== undefined &&
    ts.isNamedImports(namedBindings) &&
    namedBindings.elements.length > 0 &&
    namedBindings.elements.every((element) => element.isTypeOnly)
  );
}

function targetOf(from: string, specifier: string, all: Sources): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  const path = posix.join(posix.dirname(from), specifier).replace(/\.js$/, '.ts');
  return all.has(path) || path.endsWith('.ts') ? path : `${path}.ts`;
}

function targets({ imports }: Source): string[] {
  return unique(imports.flatMap(({ target }) => target ?? []));
}

function indexOf(path: string): number {
  const [top, name] = path.split('/');
  return top === 'src' ? modules.indexOf(name as (typeof modules)[number]) : -1;
}

/**
 * Tells whether the import is allowed: no import leaves src, except from a spec to test/support, and the target exists.
 */
function mayReach(source: Source, target: string, all: Sources): boolean {
  if (!source.path.startsWith('src/')) return true;
  if (!target.startsWith('src/')) return source.isSpec && target.startsWith('test/support/');
  if (!all.has(target)) return false;
  return source.module < 0 || (indexOf(target) >= 0 && indexOf(target) <= source.module);
}

/**
 * Tells whether the target is public. The files at the root of a module are public; `entities.ts` may import all
 * tables.
 */
function isPublic(source: Source, target: string): boolean {
  const index = indexOf(target);
  if (!source.path.startsWith('src/') || index === source.module || index < libraries) return true;
  return target.split('/').length === 3 || (source.path === 'src/entities.ts' && entity.test(target));
}

/** Returns the folder of the module of a file; in a library, each folder counts as a module. */
function moduleOf(path: string): string {
  return path
    .split('/')
    .slice(0, isLibrary(path) ? 3 : 2)
    .join('/');
}

function isLibrary(path: string): boolean {
  const index = indexOf(path);
  return index >= 0 && index < libraries;
}

/**
 * Maps each private folder of a module to the private folders that it imports, types included. All of them may import
 * the root of the module.
 */
function folderArrows(sources: readonly Source[]): Map<string, string[]> {
  const arrows = new Map<string, string[]>();
  for (const source of sources.filter(isCode)) {
    const from = posix.dirname(source.path);
    const others = targets(source).map((target) => posix.dirname(target));
    const isPrivate = (folder: string): boolean => folder !== moduleOf(source.path);
    const inside = others.filter((folder) => folder !== from && moduleOf(`${folder}/`) === moduleOf(source.path));
    if (isPrivate(from)) arrows.set(from, [...(arrows.get(from) ?? []), ...inside.filter(isPrivate)]);
  }
  return arrows;
}

function countBy(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function isPure({ module, isSpec }: Source): boolean {
  return module >= 0 && module < pure && !isSpec;
}

function isCode({ path, isSpec }: Source): boolean {
  return path.startsWith('src/') && !isSpec;
}

/** A file that uses the insides of a library names the public API that it lacks, and its canary test. */
function missingReasons({ path, text }: Source, all: Sources): string[] {
  const name = canary.exec(text)?.[1];
  const test = name?.includes('/') ? name : posix.join(posix.dirname(path), name ?? '');
  return [
    ...(request.test(text) ? [] : ['no upstream request and no missing public API']),
    ...(all.get(test)?.includes(`${posix.basename(path, '.ts')}.js'`) ? [] : ['no canary test that imports the file']),
  ];
}

function isDemoAgent(path: string): boolean {
  return path.startsWith('src/demo/agents/');
}

function impurities(source: Source): string[] {
  const packages = source.imports
    .filter(({ target, specifier }) => target === undefined && !purePackages.test(specifier))
    .map(({ specifier }) => specifier);
  return unique([...packages, ...globalsOf(source, impureNames)]);
}

function outbound(source: Source): string[] {
  const packages = source.imports.filter(({ specifier, typeOnly }) => !typeOnly && outboundPackages.has(specifier));
  const global = reads(source, 'globalThis', 'fetch') ? ['fetch'] : [];
  return unique([...packages.map(({ specifier }) => specifier), ...global, ...globalsOf(source, new Set(['fetch']))]);
}

/**
 * Returns the given names that the file uses as global values. Members, declarations and property names do not count.
 */
function globalsOf({ tree }: Source, names: ReadonlySet<string>): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && names.has(node.text) && isReference(node)) found.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function isReference(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isPropertyAccessExpression(parent)) return parent.expression === node;
  if (ts.isQualifiedName(parent) || ts.isTypeReferenceNode(parent) || ts.isTypeQueryNode(parent)) return false;
  if (ts.isPropertyAssignment(parent)) return parent.initializer === node;
  return !('name' in parent && parent.name === node) || ts.isShorthandPropertyAssignment(parent);
}

function reads({ tree }: Source, object: string, property: string): boolean {
  let found = false;
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node)) found ||= isName(node.expression, object) && node.name.text === property;
    if (ts.isElementAccessExpression(node) && ts.isStringLiteralLike(node.argumentExpression))
      found ||= isName(node.expression, object) && node.argumentExpression.text === property;
    if (ts.isVariableDeclaration(node) && ts.isObjectBindingPattern(node.name) && node.initializer)
      found ||=
        isName(node.initializer, object) &&
        node.name.elements.some(({ name, propertyName }) => isName(propertyName ?? name, property));
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return found;
}

function isName(node: ts.Node, text: string): boolean {
  return ts.isIdentifier(node) && node.text === text;
}

function hasDefaultExport(tree: ts.SourceFile): boolean {
  return tree.statements.some(
    (statement) =>
      ts.isExportAssignment(statement) ||
      (ts.canHaveModifiers(statement) &&
        ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.DefaultKeyword)) ||
      (ts.isExportDeclaration(statement) &&
        statement.exportClause !== undefined &&
        ts.isNamedExports(statement.exportClause) &&
        statement.exportClause.elements.some(({ name }) => name.text === 'default')),
  );
}

/** Returns each cycle of run-time imports once, as the list of its files. */
function cyclesOf(sources: readonly Source[]): string[][] {
  return cyclesIn(
    new Map(
      sources.map(({ path, imports }) => [
        path,
        imports.filter(({ typeOnly }) => !typeOnly).flatMap(({ target }) => target ?? []),
      ]),
    ),
  );
}

/** Returns each cycle of a graph once, as the list of its names. */
function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const done = new Set<string>();
  const way: string[] = [];
  const cycles: string[][] = [];
  const walk = (name: string): void => {
    const met = way.indexOf(name);
    if (met >= 0) cycles.push([...way.slice(met), name]);
    if (met >= 0 || done.has(name)) return;
    way.push(name);
    graph.get(name)?.forEach(walk);
    way.pop();
    done.add(name);
  };
  [...graph.keys()].forEach(walk);
  return cycles;
}

function linesOf(text: string): number {
  return text.replace(/\n$/, '').split('\n').length;
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

function keysOf<Key extends string>(record: Record<Key, unknown>): Key[] {
  return Object.keys(record) as Key[];
}
