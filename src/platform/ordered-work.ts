/** Runs pieces of work in the order in which they came: a piece at once, unless an earlier one still runs. */
export class OrderedWork {
  /** Ends when all work until now has ended; undefined when it has. */
  private rest?: Promise<void>;

  /** @param fail takes the error of a piece of work, if one throws. The next piece runs even so. */
  constructor(private readonly fail: (thrown: unknown) => void) {}

  get isBusy(): boolean {
    return this.rest !== undefined;
  }

  /** Resolves when the work has ended; undefined when it already has. */
  run(work: () => void | Promise<void>): Promise<void> | undefined {
    const running = this.rest ? this.rest.then(() => this.begin(work)) : this.begin(work);
    return running && this.follow(running);
  }

  private begin(work: () => void | Promise<void>): Promise<void> | undefined {
    try {
      return work()?.catch((thrown: unknown) => this.fail(thrown));
    } catch (thrown) {
      this.fail(thrown);
      return undefined;
    }
  }

  private follow(running: Promise<void>): Promise<void> {
    const rest = running.then(() => {
      if (this.rest === rest) this.rest = undefined;
    });
    this.rest = rest;
    return rest;
  }
}
