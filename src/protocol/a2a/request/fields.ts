import type { Violation } from '../../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { containsUnstorable, isUnstorable, unstorable } from '../../json-text.js';
import { member } from '../members.js';
import { timeOf } from './time.js';

export interface TextRule {
  /** Characters (UTF-16 units). */
  readonly max?: number;
  /** What an empty text is: refused unless said otherwise; `absent` is how ProtoJSON sees fields without presence. */
  readonly empty?: 'absent' | 'kept';
  /** The text will stand in an HTTP header. */
  readonly header?: boolean;
}

const maxInt32 = 2_147_483_647;
const decimal = /^-?\d{1,15}(?:\.0{1,15})?$/;
// What a header value may hold (RFC 9110 section 5.5), without the tab.
const headerText = /^[\x20-\x7e\x80-\xff]*$/;

/**
 * Reads one object of a request, strictly: each reading method answers undefined for an absent member (null counts as absent,
 * snake_case names are accepted), checks a present one, and notes what is wrong with it. All violations of a request end up in
 * one list, so that its sender learns of them at once; when there is one, what was read is thrown away.
 */
export class Fields {
  constructor(
    private readonly object: JsonObject,
    private readonly path = '',
    readonly violations: Violation[] = [],
  ) {}

  /** The member as it is; undefined when absent or null. */
  value(name: string): Json | undefined {
    return member(this.object, name);
  }

  /** True when the member is there under exactly this name, be it null. */
  owns(name: string): boolean {
    return Object.hasOwn(this.object, name);
  }

  refuse(name: string, description: string): undefined {
    this.violations.push({ field: this.at(name), description });
    return undefined;
  }

  /** Something is wrong with the object as a whole. */
  refuseAll(description: string): undefined {
    this.violations.push({ field: this.path === '' ? 'params' : this.path, description });
    return undefined;
  }

  text(name: string, rule: TextRule = {}): string | undefined {
    const value = this.value(name);
    return value === undefined ? undefined : this.checkText(name, value, rule);
  }

  /** As `text`, and a violation when there is none; the empty text it then answers is never used. */
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
   * A whole number within the bounds, both included; without an upper one, any that fits in an int32. ProtoJSON may write it as text.
   */
  integer(name: string, min: number, max = maxInt32): number | undefined {
    const given = this.value(name);
    if (given === undefined) return undefined;
    const value = typeof given === 'string' && decimal.test(given) ? Number(given) : given;
    if (typeof value !== 'number' || !Number.isInteger(value)) return this.refuse(name, 'must be a whole number');
    if (value >= min && value <= max) return value;
    return this.refuse(name, `must be ${min} to ${max}`);
  }

  /** An ISO 8601 time of RFC 3339 shape, to milliseconds since the epoch. */
  time(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    return timeOf(value) ?? this.refuse(name, 'must be a time such as 2026-01-31T12:00:00.000Z');
  }

  /** A free-form object, passed on as it is. */
  json(name: string): JsonObject | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (!isJsonObject(value)) return this.refuse(name, 'must be an object');
    return this.storable(name, value);
  }

  /** Any JSON as it is, unless it holds text that cannot be stored. */
  storable<Value extends Json>(name: string, value: Value): Value | undefined {
    return containsUnstorable(value) ? this.refuse(name, unstorable) : value;
  }

  /** The whole object as it is, unless it holds text that cannot be stored. */
  whole(): JsonObject | undefined {
    return containsUnstorable(this.object) ? this.refuseAll(unstorable) : this.object;
  }

  /** The object of that name, to be read in turn. */
  child(name: string): Fields | undefined {
    const value = this.value(name);
    if (value === undefined) return undefined;
    if (!isJsonObject(value)) return this.refuse(name, 'must be an object');
    return new Fields(value, this.at(name), this.violations);
  }

  /** As `child`, and a violation when there is none. */
  requiredChild(name: string): Fields | undefined {
    return this.value(name) === undefined ? this.refuse(name, 'is required') : this.child(name);
  }

  /** The objects of a list. What is too long is refused unread. */
  children(name: string, max: number): Fields[] {
    const list = this.list(name, max) ?? [];
    return list.flatMap((value, index) => {
      const item = `${name}[${index}]`;
      if (isJsonObject(value)) return [new Fields(value, this.at(item), this.violations)];
      this.refuse(item, 'must be an object');
      return [];
    });
  }

  /** An enum by the name of a value, or by its number, which ProtoJSON takes as well; undefined too for a number without a name. */
  enumName(name: string, names: readonly string[]): string | undefined {
    const value = this.value(name);
    if (value === undefined || value === '') return undefined;
    const number = typeof value === 'string' && /^\d{1,3}$/.test(value) ? Number(value) : value;
    if (typeof number !== 'number') return this.text(name);
    return names[number] ?? this.refuse(name, `must be ${names.slice(1).join(', ')}`);
  }

  /** The texts of a list, none empty; an empty list is an absent one, as in ProtoJSON. */
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
    if (header && !headerText.test(value)) return this.refuse(name, 'must not contain what no HTTP header can hold');
    return value;
  }

  private at(name: string): string {
    return this.path === '' ? name : `${this.path}.${name}`;
  }
}
