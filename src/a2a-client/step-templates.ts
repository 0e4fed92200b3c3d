import type { Violation } from '../kernel/errors.js';
import type { Json, JsonObject } from '../kernel/json.js';

export type Filled<Value> =
  { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly violations: readonly Violation[] };

const template = /\{\{([^{}]*)\}\}/g;
const whole = /^\{\{([^{}]*)\}\}$/;
const path = /^[^\s.[\]]+(?:\.[^\s.[\]]+|\[\d+\])*$/;
const maxViolations = 20;
/** Characters that all templates of one step may bring; a short step must not become a long message. */
const maxCharacters = 1_048_576;

/**
 * Fills the `{{a.b[0].c}}` of every text in a value with what lies at that path of the context (RE-47). A text that is one template and
 * nothing else becomes the value itself, whatever its type; inside a text, other types are written as JSON. Names of members are
 * left as they are, and so is what was filled in. Only a context's own members are found; a path that leads nowhere is a violation.
 */
export function fillTemplates<Value extends Json>(value: Value, context: JsonObject): Filled<Value> {
  const filling = new Filling(context);
  const filled = filling.fill(value, '');
  const { violations } = filling;
  return violations.length > 0 ? { ok: false, violations } : { ok: true, value: filled as Value };
}

class Filling {
  readonly violations: Violation[] = [];
  private readonly found = new Map<string, { value: Json; text: string } | undefined>();
  private left = maxCharacters;

  constructor(private readonly context: JsonObject) {}

  fill(value: Json, field: string): Json {
    if (typeof value === 'string') return this.fillText(value, field);
    if (typeof value !== 'object' || value === null) return value;
    if (Array.isArray(value)) return value.map((item, index) => this.fill(item, below(field, index)));
    const members = Object.entries(value).map(([name, inner]) => [name, this.fill(inner, below(field, name))] as const);
    return Object.fromEntries(members);
  }

  private fillText(text: string, field: string): Json {
    const only = whole.exec(text);
    if (only) return this.at(only[1]!, field)?.value ?? null;
    return text.replace(template, (_, inside: string) => this.at(inside, field)?.text ?? '');
  }

  private at(inside: string, field: string): { value: Json; text: string } | undefined {
    const wanted = inside.trim();
    if (!this.found.has(wanted)) this.found.set(wanted, this.find(wanted));
    const found = this.found.get(wanted);
    if (!found) return this.refuse(field, `nothing is at {{${wanted.slice(0, 200)}}} of the context`);
    this.left -= found.text.length;
    return this.left < 0 ? this.refuse(field, `templates bring more than ${maxCharacters} characters`) : found;
  }

  private find(wanted: string): { value: Json; text: string } | undefined {
    if (!path.test(wanted)) return undefined;
    let value: Json | undefined = this.context;
    for (const name of wanted.replace(/\[(\d+)\]/g, '.$1').split('.')) value = ownMember(value, name);
    return value === undefined ? undefined : { value, text: typeof value === 'string' ? value : JSON.stringify(value) };
  }

  private refuse(field: string, description: string): undefined {
    if (this.violations.length < maxViolations) this.violations.push({ field, description });
    return undefined;
  }
}

function below(field: string, name: string | number): string {
  return field === '' ? String(name) : `${field}.${name}`;
}

function ownMember(value: Json | undefined, name: string): Json | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Array.isArray(value)) return /^\d{1,9}$/.test(name) ? value[Number(name)] : undefined;
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
