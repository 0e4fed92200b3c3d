import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { PublicUrl } from '../../platform/http/public-url.js';

/** Knows where a person decides about an approval: on its page, or through the API when the pages are off. */
@Injectable()
export class ApprovalPages {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly publicUrl: PublicUrl,
  ) {}

  get isOn(): boolean {
    return this.settings.RIALTO_APPROVAL_PAGES;
  }

  urlOf(id: string): string {
    return `${this.publicUrl.base}${this.isOn ? '' : '/api'}/approvals/${id}`;
  }
}
