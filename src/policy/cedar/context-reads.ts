import type { PolicyJson } from '@cedar-policy/cedar-wasm/nodejs';
import { isJsonObject } from '../../kernel/json.js';
import { atOnce } from '../../platform/jobs/in-turns.js';

export type Names = ReadonlySet<string> | 'all';

/**
 * The parts of the context that a set of policies can read. Other parts are not sent to Cedar and not part of a cache
 * key.
 */
export interface ContextReads {
  readonly attributes: Names;
  /** Arguments that policies read as tags of `context.input`. */
  readonly tags: Names;
  /** True when a policy names a single task. Otherwise tasks with the same facts get the same decision. */
  readonly singleTasks: boolean;
}

/** Returns whether policies that read these names can read this one. */
export function includes(names: Names, name: string): boolean {
  return names === 'all' || names.has(name);
}

/**
 * Returns what the conditions of these policies read, at least: an expression that is not understood counts as
 * everything.
 */
export function contextReads(policies: Iterable<PolicyJson>): ContextReads {
  return atOnce(readingContext(policies));
}

/** Does the same in pieces of one policy each. */
export function* readingContext(policies: Iterable<PolicyJson>): Generator<void, ContextReads> {
  const found: Found = { attributes: new Set(), tags: new Set(), wholeContext: false, wholeInput: false };
  let singleTasks = false;
  for (const policy of policies) {
    for (const { body } of policy.conditions) visit(body, found);
    singleTasks ||= namesTask(policy);
    yield;
  }
  return {
    singleTasks,
    attributes: found.wholeContext ? 'all' : found.attributes,
    tags: found.wholeContext || found.wholeInput ? 'all' : found.tags,
  };
}

/** Returns whether `Task::"…"` occurs anywhere in the policy, in its head or conditions. */
function namesTask(node: unknown): boolean {
  if (Array.isArray(node)) return node.some(namesTask);
  if (!isJsonObject(node)) return false;
  return (node.type === 'Task' && typeof node.id === 'string') || Object.values(node).some(namesTask);
}

interface Found {
  attributes: Set<string>;
  tags: Set<string>;
  wholeContext: boolean;
  wholeInput: boolean;
}

function visit(node: unknown, found: Found): void {
  if (Array.isArray(node)) for (const item of node) visit(item, found);
  if (!isJsonObject(node)) return;
  if (node.Var === 'context') found.wholeContext = true;
  else if (isInputLiteral(node)) seeInput(found);
  else if (!seeTag(node, found) && !seeAttribute(node, found))
    for (const child of Object.values(node)) visit(child, found);
}

/**
 * Records a tag that `context.input.hasTag("x")` or `context.input.getTag("x")` reads by a literal name; else returns
 * false.
 */
function seeTag(node: Record<string, unknown>, found: Found): boolean {
  const call = node.hasTag ?? node.getTag;
  if (!isJsonObject(call) || !isJsonObject(call.right) || typeof call.right.Value !== 'string') return false;
  if (contextAttribute(call.left) !== 'input') return false;
  found.attributes.add('input');
  found.tags.add(call.right.Value);
  return true;
}

/** Records an attribute that `context.x` or `context has x` reads; else returns false. */
function seeAttribute(node: Record<string, unknown>, found: Found): boolean {
  const attribute = contextAttribute(node);
  if (attribute === undefined) return false;
  found.attributes.add(attribute);
  if (attribute === 'input') found.wholeInput = true;
  return true;
}

function contextAttribute(node: unknown): string | undefined {
  if (!isJsonObject(node)) return undefined;
  const access = node['.'] ?? node.has;
  if (!isJsonObject(access) || !isJsonObject(access.left) || access.left.Var !== 'context') return undefined;
  const first = Array.isArray(access.attr) ? access.attr[0] : access.attr;
  return typeof first === 'string' ? first : undefined;
}

/** Returns whether a node is a literal `Input::"input"`, which reads the arguments without naming the context. */
function isInputLiteral(node: Record<string, unknown>): boolean {
  const literal = isJsonObject(node.Value) ? node.Value.__entity : undefined;
  return isJsonObject(literal) && literal.type === 'Input';
}

function seeInput(found: Found): void {
  found.attributes.add('input');
  found.wholeInput = true;
}
