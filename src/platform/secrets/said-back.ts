import { RialtoError } from '../../kernel/errors.js';
import { formsOf, instead, leastLength, withoutForms } from './secret-forms.js';

/** What is nested deeper is hostile: to look through all of it would take more stack than there is. */
const maxDepth = 500;
/** A text that ends with so much of a credential ends without it. */
const longestRest = 8;

/** Removes the credentials that were sent to a peer from its answers, errors and notifications. */
export class SaidBack {
  private readonly forms: readonly string[];

  /** @param credentials those of fewer than four characters are none. */
  constructor(credentials: Iterable<string>) {
    const isOne = ({ length }: string): boolean => length >= leastLength;
    this.forms = [...new Set([...credentials].filter(isOne).flatMap(formsOf).filter(isOne))];
  }

  get isEmpty(): boolean {
    return this.forms.length === 0;
  }

  /** A value of strings, lists and plain objects, their names too. The value itself when nothing in it is said back. */
  clean<T>(value: T): T {
    return this.isEmpty ? value : (this.inside(value) as T);
  }

  /** The same for one text that comes in pieces. */
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

  /** An error of a library, changed in place, with what it carries: its class says what it means. */
  thrown(error: unknown): unknown {
    if (!(error instanceof Error) || this.isEmpty) return error;
    for (const name of ['message', 'stack', ...Object.keys(error)] as (keyof Error)[]) {
      const clean = this.clean(error[name]);
      if (clean !== error[name]) Object.defineProperty(error, name, { value: clean });
    }
    return error;
  }

  private inside(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.inText(value);
    if (typeof value !== 'object' || value === null) return value;
    if (depth >= maxDepth) return '[deep]';
    if (Array.isArray(value)) {
      const items = value.map((item: unknown) => this.inside(item, depth + 1));
      return items.every((item, index) => item === value[index]) ? value : items;
    }
    if (!isPlain(value)) return value;
    let isChanged = false;
    const entries = Object.entries(value).map(([name, item]) => {
      const clean = [this.inText(name), this.inside(item, depth + 1)] as const;
      isChanged ||= clean[0] !== name || clean[1] !== item;
      return clean;
    });
    return isChanged ? Object.fromEntries(entries) : value;
  }

  private inText(text: string): string {
    return this.forms.some((form) => text.includes(form)) ? withoutForms(text, this.forms) : text;
  }
}

/** A text in pieces, without what is said back: what may be the beginning of a credential waits for the piece after it. */
export class CleanPieces {
  private held = '';

  constructor(private readonly forms: readonly string[]) {}

  /** What can be said now. */
  push(piece: string): string {
    const clean = withoutForms(this.held + piece, this.forms);
    const begins = this.beginning(clean);
    this.held = clean.slice(begins);
    return clean.slice(0, begins);
  }

  /** The rest: the text is over. Most of a credential is as good as all of it. */
  end(): string {
    const { held } = this;
    this.held = '';
    return held.length < longestRest ? held : instead;
  }

  /** Where the last characters begin that a credential may begin with. */
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
/** Long, of letters and digits, and without the signs that text, addresses and types of media have. */
const tokenLike = /^(?=[^\d]*\d)(?=[^a-z]*[a-z])[\w.~+=-]{16,}$/i;
/** A shorter value may be a word of any answer. */
const leastCredential = 6;

/**
 * The credentials among named values (headers, environment variables, query parameters), recognised by the name or the form of the value;
 * each whole, and without an authentication scheme before it.
 */
export function credentialsIn(words: Readonly<Record<string, string>>): string[] {
  return credentialsAmong(Object.entries(words));
}

function credentialsAmong(words: readonly (readonly [name: string, value: string])[]): string[] {
  return words.flatMap(([name, value]) => {
    const isOne = credentialNames.test(name) || tokenLike.test(value);
    return isOne ? [value, value.split(' ').at(-1)!].filter(({ length }) => length >= leastCredential) : [];
  });
}

/** The credentials in a URL: its password, encoded and decoded, and those among its query parameters. */
export function credentialsOf(url: string): string[] {
  const { password, searchParams } = new URL(url);
  return [password, decoded(password), ...credentialsAmong([...searchParams])].filter((one) => one !== '');
}

/** A URL may hold a percent sign that begins no escape. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
