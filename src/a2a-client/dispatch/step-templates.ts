import type { Violation } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

export type Filled<Value> =
  { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly violations: readonly Violation[] };

const template = /\{\{([^{}]*)\}\}/g;
const whole = /^\{\{([^{}]*)\}\}$/;
const path = /^[^\s.[\]]+(?:\.[^\s.[\]]+|\[\d+\])*$/;
const maxViolations = 20;
/**
 * Maximum number of characters that all templates of one step may insert, so that a short step cannot become a long
 * message.
 */
const maxCharacters = 1_048_576;

/**
 * Fills each `{{a.b[0].c}}` in the texts of a value with the value at that path of the context (RE-47). A text that is
 * exactly one template becomes the value itself, of any type; inside a longer text, other types are written as JSON.
 * Names of members and inserted values are not filled. Only own members of the context are found; a path without a
 * value is a violation. Parts without templates are not copied.
 */
export function fillTemplates<Value extends Json>(value: Value, context: JsonObject): Filled<Value> {
  const filling = new Filling(context);
  const filled = filling.fill(value);
  const { violations } = filling;
  return violations.length > 0 ? { ok: false, violations } : { ok: true, value: filled as Value };
}

class Filling {
  readonly violations: Violation[] = [];
  private left = maxCharacters;
  /** Names and indexes from the root to the current value. */
  private readonly field: (string | number)[] = [];

  constructor(private readonly context: JsonObject) {}

  fill(value: Json): Json {
    if (typeof value === 'string') return value.includes('{{') ? this.fillText(value) : value;
    if (Array.isArray(value)) return this.fillItems(value, [...value.keys()]);
    return isJsonObject(value) ? this.fillItems(value, Object.keys(value)) : value;
  }

  private fillItems(value: Json[] | JsonObject, names: readonly (string | number)[]): Json {
    const given = value as Record<string | number, Json>;
    let copy: typeof given | undefined;
    for (const name of names) {
      const item = given[name]!;
      if (typeof item !== 'string' && (typeof item !== 'object' || item === null)) continue;
      this.field.push(name);
      const filled = this.fill(item);
      this.field.pop();
      if (filled === item) continue;
      copy ??= (Array.isArray(value) ? [...value] : { ...value }) as typeof given;
      copy[name] = filled;
    }
    return (copy as Json | undefined) ?? value;
  }

  private fillText(text: string): Json {
    const only = whole.exec(text);
    if (only) return this.at(only[1]!)?.value ?? null;
    return text.replace(template, (_, inside: string) => this.at(inside)?.text ?? '');
  }

  /**
   * Returns the value at a path. Looks up nothing after the outcome is known and stores no text: the total length of
   * the texts made here is at most the limit for templates plus one value of the context, for any number of paths.
   */
  private at(inside: string): { value: Json; text: string } | undefined {
    if (this.left < 0 || this.violations.length >= maxViolations) return undefined;
    const wanted = inside.trim();
    const value = this.findValue(wanted);
    if (value === undefined) return this.addViolation(`the context has no value at {{${wanted.slice(0, 200)}}}`);
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    this.left -= text.length;
    return this.left < 0
      ? this.addViolation(`the templates insert more than ${maxCharacters} characters`)
      : { value, text };
  }

  private findValue(wanted: string): Json | undefined {
    if (!path.test(wanted)) return undefined;
    let value: Json | undefined = this.context;
    for (const name of wanted.replace(/\[(\d+)\]/g, '.$1').split('.')) value = ownMember(value, name);
    return value;
  }

  private addViolation(description: string): undefined {
    this.violations.push({ field: this.field.join('.'), description });
    return undefined;
  }
}

function ownMember(value: Json | undefined, name: string): Json | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return /^(?:0|[1-9]\d{0,8})$/.test(name) ? value[Number(name)] : undefined;
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
