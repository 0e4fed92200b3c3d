import type { Violation } from '../../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { containsUnstorable, isUnstorable, unstorable } from '../../json-text.js';
import { member } from '../members.js';
import { timeOf } from './time.js';

export interface TextRule {
  /** Largest number of characters (UTF-16 units). */
  readonly max?: number;
  /** How an empty text is treated: refused by default; `absent` is how ProtoJSON treats fields without presence. */
  readonly empty?: 'absent' | 'kept';
  /** True when the text is sent in an HTTP header. */
  readonly header?: boolean;
}

const maxInt32 = 2_147_483_647;
const decimal = /^-?\d{1,15}(?:\.0{1,15})?$/;
// The characters of a header value (RFC 9110 section 5.5), without the tab.
const headerText = /^[\x20-\x7e\x80-\xff]*$/;

/**
 * Reads one object of a request strictly. Each reading method returns undefined for an absent member (null counts as
 * absent, snake_case names are accepted), checks a present member, and records its problems. All violations of a
 * request are in one list, so that its sender sees them at once; when there is one, the values that were read are
 * discarded.
 */
export class Fields {
  constructor(
    private readonly object: JsonObject,
    private readonly path = '',
    readonly violations: Violation[] = [],
  ) {}

  /** Returns the member unchanged; undefined when it is absent or null. */
  value(name: string): Json | undefined {
    return member(this.object, name);
  }

  /** True when a member with exactly this name exists, even when it is null. */
  owns(name: string): boolean {
    return Object.hasOwn(this.object, name);
  }

  refuse(name: string, description: string): undefined {
    this.violations.push({ field: this.at(name), description });
    return undefined;
  }

  /** Records a problem of the whole object. */
  refuseAll(description: string): undefined {
    this.violations.push({ field: this.path === '' ? 'params' : this.path, description });
    return undefined;
  }

  text(name: string, rule: TextRule = {}): string | undefined {
    const value = this.value(name);
    return value === undefined ? undefined : this.checkText(name, value, rule);
  }

  /** Like `text`, but an absent member is a violation; the empty text that is returned then is never used. */
  requiredText(name: string, rule: TextRule = {}): string {
    const value = this.value(name);
    if (value === undefined) this.refuse(name, 'is required');
    return (value === undefined ? undefined : this.checkText(name, value, rule)) ?? '';
  }

  flag(name: string): boolean | undefined {
    const value = this.value(name);
    if (value === undefined || typeof value === 'boolean') return value;
    return this.refuse(name, 'must be true or false');
  }

  /**
   * Reads a whole number within inclusive bounds; without an upper bound, any int32. ProtoJSON may write it as a
   * string.
   */
  integer(name: string, min: number, max = maxInt32): number | undefined {
    const given = this.value(name);
    if (given === undefined) return undefined;
    const value = typeof given === 'string' && decimal.test(given) ? Number(given) : given;
    if (typeof value !== 'number' || !Number.isInteger(value)) return this.refuse(name, 'must be a whole number');
    if (value >= min && value <= max) return value;
    return this.refuse(name, `must be ${min} to ${max}`);
  }

  /** Reads an ISO 8601 time in the form of RFC 3339, as milliseconds since the epoch. */
  time(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    return timeOf(value) ?? this.refuse(name, 'must be a time such as 2026-01-31T12:00:00.000Z');
  }

  /** Returns a free-form object unchanged. */
  json(name: string): JsonObject | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (!isJsonObject(value)) return this.refuse(name, 'must be an object');
    return this.storable(name, value);
  }

  /** Returns any JSON unchanged, unless it has text that cannot be stored. */
  storable<Value extends Json>(name: string, value: Value): Value | undefined {
    return containsUnstorable(value) ? this.refuse(name, unstorable) : value;
  }

  /** Returns the whole object unchanged, unless it has text that cannot be stored. */
  whole(): JsonObject | undefined {
    return containsUnstorable(this.object) ? this.refuseAll(unstorable) : this.object;
  }

  /** Returns the object with this name, to be read in turn. */
  child(name: string): Fields | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (!isJsonObject(value)) return this.refuse(name, 'must be an object');
    return new Fields(value, this.at(name), this.violations);
  }

  /** Like `child`, but an absent member is a violation. */
  requiredChild(name: string): Fields | undefined {
    return this.value(name) === undefined ? this.refuse(name, 'is required') : this.child(name);
  }

  /** Returns the objects of a list. A list that is too long is refused without reading its items. */
  children(name: string, max: number): Fields[] {
    const list = this.list(name, max) ?? [];
    return list.flatMap((value, index) => {
      const item = `${name}[${index}]`;
      if (isJsonObject(value)) return [new Fields(value, this.at(item), this.violations)];
      this.refuse(item, 'must be an object');
      return [];
    });
  }

  /**
   * Reads an enum by the name of a value, or by its number, which ProtoJSON accepts too. Undefined when it is absent or
   * wrong.
   */
  enumName(name: string, names: readonly string[]): string | undefined {
    const value = this.value(name);
    if (value === undefined || value === '') return undefined;
    const number = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value;
    if (typeof number !== 'number') return this.text(name);
    return names[number] ?? this.refuse(name, `must be ${names.slice(1).join(', ')}`);
  }

  /** Reads a list of non-empty texts; an empty list counts as absent, as in ProtoJSON. */
  texts(name: string, max: number, rule: TextRule): string[] | undefined {
    const list = this.list(name, max);
    if (list === undefined || list.length === 0) return undefined;
    return list.map((value, index) => this.checkText(`${name}[${index}]`, value, rule) ?? '');
  }

  private list(name: string, max: number): Json[] | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) return this.refuse(name, 'must be an array');
    return value.length <= max ? value : this.refuse(name, `must have at most ${max} items`);
  }

  private checkText(name: string, value: Json, { max, empty, header }: TextRule): string | undefined {
    if (typeof value !== 'string') return this.refuse(name, 'must be a string');
    if (value === '') {
      if (empty === undefined) return this.refuse(name, 'must not be empty');
      return empty === 'kept' ? value : undefined;
    }
    if (max !== undefined && value.length > max) return this.refuse(name, `must be at most ${max} characters`);
    if (isUnstorable(value)) return this.refuse(name, unstorable);
    if (header && !headerText.test(value))
      return this.refuse(name, 'must not have characters that an HTTP header cannot hold');
    return value;
  }

  private at(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }
}
