import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, someInside } from '../../kernel/json.js';
import { percentDecoded } from '../../kernel/text.js';
import { formsOf, instead, leastLength, withoutForms } from './secret-forms.js';

/** Deeper nesting is hostile: searching it would need more stack than is available. */
const maxDepth = 500;
/** When a text ends with this many characters of a credential, they are removed too. */
const longestRest = 8;

/** Removes the credentials that were sent to a peer from its answers, errors and notifications. */
export class CredentialRemover {
  private readonly forms: readonly string[];

  /** @param credentials values shorter than four characters are ignored. */
  constructor(credentials: Iterable<string>) {
    const isCredential = ({ length }: string): boolean => length >= leastLength;
    this.forms = [...new Set([...credentials].filter(isCredential).flatMap(formsOf).filter(isCredential))];
  }

  get isEmpty(): boolean {
    return this.forms.length === 0;
  }

  /**
   * Cleans a value of strings, lists and plain objects, including member names. Returns the value itself when it
   * contains no credential.
   */
  clean<T>(value: T): T {
    return this.isEmpty ? value : (this.cleanValue(value) as T);
  }

  /** Cleans a value of parsed JSON in place, with pauses. Renamed members move to the end of their object. */
  *cleaning<T>(value: T): Generator<void, T> {
    if (this.isEmpty) return value;
    const root: [T] = [value];
    const renamed: [owner: Record<string | number, unknown>, name: string, clean: string][] = [];
    yield* someInside(root, (inner, owner, name) => {
      if (typeof inner === 'string') {
        const clean = this.cleanText(inner);
        if (clean !== inner) owner[name] = clean;
      }
      if (typeof name === 'string') {
        const clean = this.cleanText(name);
        if (clean !== name) renamed.push([owner, name, clean]);
      }
      return false;
    });
    for (const [owner, name, clean] of renamed) {
      yield;
      const inner = owner[name];
      delete owner[name];
      owner[clean] = inner;
    }
    return root[0];
  }

  /** Returns a cleaner for one text that arrives in pieces. */
  pieces(): CleanPieces {
    return new CleanPieces(this.forms);
  }

  error(thrown: unknown): RialtoError {
    const known = RialtoError.from(thrown);
    if (this.isEmpty) return known;
    const { code, message, hint, violations, data, cause } = known;
    return new RialtoError(code, {
      message: this.clean(message),
      hint,
      violations,
      data: this.clean(data),
      cause: this.thrown(cause),
    });
  }

  /**
   * Cleans an error of a library in place, with its fields: a copy would lose its class, which has a meaning. Returns
   * a clean copy of plain facts.
   */
  thrown(error: unknown): unknown {
    if (this.isEmpty) return error;
    if (!(error instanceof Error)) return isJsonObject(error) ? this.clean(error) : error;
    for (const name of ['message', 'stack', ...Object.keys(error)] as (keyof Error)[]) {
      const clean = this.clean(error[name]);
      if (clean !== error[name]) Object.defineProperty(error, name, { value: clean });
    }
    return error;
  }

  private cleanValue(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.cleanText(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth >= maxDepth) return '[deep]';
    if (Array.isArray(value)) {
      const items = value.map((item: unknown) => this.cleanValue(item, depth + 1));
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    if (!isPlain(value)) return value;
    let isChanged = false;
    const entries = Object.entries(value).map(([name, item]) => {
      const clean = [this.cleanText(name), this.cleanValue(item, depth + 1)] as const;
      isChanged ||= clean[0] !== name || clean[1] !== item;
      return clean;
    });
    return isChanged ? Object.fromEntries(entries) : value;
  }

  private cleanText(text: string): string {
    return this.forms.some((form) => text.includes(form)) ? withoutForms(text, this.forms) : text;
  }
}

/** Cleans a text that arrives in pieces: the possible beginning of a credential is held back until the next piece. */
export class CleanPieces {
  private held = '';

  constructor(private readonly forms: readonly string[]) {}

  /** Returns the text that is safe to pass on now. */
  push(piece: string): string {
    const clean = withoutForms(this.held + piece, this.forms);
    const begins = this.beginning(clean);
    this.held = clean.slice(begins);
    return clean.slice(0, begins);
  }

  /** Returns the rest at the end of the text. A long part of a credential counts as the credential. */
  end(): string {
    const { held } = this;
    this.held = '';
    return held.length < longestRest ? held : instead;
  }

  /** Index of the last characters that may be the beginning of a credential. */
  private beginning(text: string): number {
    const lengths = this.forms.map((form) => {
      let length = Math.min(form.length - 1, text.length);
      while (length > 0 && !text.endsWith(form.slice(0, length))) length--;
      return length;
    });
    return text.length - Math.max(0, ...lengths);
  }
}

function isPlain(value: object): boolean {
  const prototype = Object.getPrototypeOf(value) as object | null;
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** `code` and `sig` are query parameters of Azure (function keys, shared access signatures). */
const credentialNames = /auth|cookie|pass|pwd|secret|token|credential|key|bearer|session|signature|^(?:code|sig)$/i;
/** Long, with letters and digits, and without the characters that text, URLs and media types contain. */
const tokenLike = /^(?=[^\d]*\d)(?=[^a-z]*[a-z])[\w.~+=-]{16,}$/i;
/** A shorter value may be an ordinary word of an answer. */
const minCredentialLength = 6;

/**
 * Finds the credentials among named values (headers, environment variables, query parameters), by the name or the
 * form of the value. Returns each whole, and without the authentication scheme before it.
 */
export function credentialsIn(values: Readonly<Record<string, string>>): string[] {
  return credentialsAmong(Object.entries(values));
}

function credentialsAmong(values: readonly (readonly [name: string, value: string])[]): string[] {
  return values.flatMap(([name, value]) => {
    const isCredential = credentialNames.test(name) || tokenLike.test(value);
    return isCredential ? [value, value.split(' ').at(-1)!].filter(({ length }) => length >= minCredentialLength) : [];
  });
}

/** Finds the credentials in a URL: its password, encoded and decoded, and those among its query parameters. */
export function credentialsOf(url: string): string[] {
  const { password, searchParams } = new URL(url);
  return [password, percentDecoded(password) ?? password, ...credentialsAmong([...searchParams])].filter(
    (one) => one !== '',
  );
}
