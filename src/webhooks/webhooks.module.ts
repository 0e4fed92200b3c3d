import { Module } from '@nestjs/common';

/** Room 9: push notifications. Its doors are not built yet and answer 404. */
@Module({})
export class WebhooksModule {}
